#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A ctest: examples/server.c and client.c on a free port. Requests sleep all at once; clients that go away early, that
# talk nonsense, or that do not read their answers (slow-client.py), do not keep others from being served; a wrong command
# line is one line.
# Usage: check-server.sh SERVER CLIENT [EMULATOR...]
set -u
emulator=("${@:3}")
server=(timeout 60 "${emulator[@]}" "$1")
client=(timeout 60 "${emulator[@]}" "$2")

fail() {
    echo "$1" >&2
    exit 1
}

# start CONNECTIONS: on a free port, $port; what it says comes from descriptor 3.
start() {
    exec 3< <("${server[@]}" 0 "$1" 2>&1)
    pid=$!
    read -r -t 30 line <&3 && [[ $line =~ ^listening\ on\ port\ ([0-9]+)$ ]] || fail "the server says '${line:-}'"
    port=${BASH_REMATCH[1]}
}

# 300 of 0.2 s: a minute one after the other.
expected='^300 requests of 200 ms in ([0-9]+)\.[0-9]+ s, [0-9]+ a second; latency [0-9.]+ ms, 99th percentile [0-9.]+$'
ask() {
    local output
    output=$("${client[@]}" "$port" 300 200 2>&1) || fail "the client failed: $output"
    echo "$output"
    [[ $output =~ $expected ]] && ((BASH_REMATCH[1] < 30)) || fail "the client says '$output'"
}

start 5
ask
exec 4<>"/dev/tcp/127.0.0.1/$port" && printf '7 10\n' >&4 && read -r -t 30 line <&4 && [[ $line == 7 ]] ||
    fail "the answer to 7 is '$line'"
printf '8 300\n9 1\n' >&4 # and goes
exec 4>&-
exec 4<>"/dev/tcp/127.0.0.1/$port" && printf 'nonsense\n' >&4 && ! read -r -t 30 line <&4 ||
    fail "nonsense is answered with '$line'"
exec 4>&-
ask & # two at once
ask
wait $! || exit 1

rest=$(cat <&3)
wait "$pid" || fail "the server: status $?, $rest"
[[ $rest == *'not "NUMBER MILLISECONDS"'*'903 requests were served' ]] || fail "the server's last words: $rest"

# While one does not read, and the kernel takes no more for it, a thread of the server's waits to send, but not its worker.
if command -v python3 >/dev/null; then
    THRUM_WORKERS=1 start 2
    coproc python3 "${0%/*}/slow-client.py" "$port"
    slow=$COPROC_PID
    read -r -t 60 line <&"${COPROC[0]}" && [[ $line == stuck* ]] || fail "the slow client says '${line:-}'"
    echo "$line"
    ask
    echo >&"${COPROC[1]}"
    wait "$slow" || fail "the slow client: status $?"
    rest=$(cat <&3)
    wait "$pid" || fail "the server of a slow client: status $?, $rest"
    [[ $rest == '12300 requests were served' ]] || fail "the last words of a slow client's server: $rest"
fi

refuse() {
    local output
    output=$("$@" 2>&1) && fail "$* is taken"
    [[ $output == *': '* && $output != *$'\n'* ]] || fail "$* is refused with: $output"
}
refuse "${client[@]}" "$port" 1 1 # nobody listens any more
refuse "${client[@]}"
refuse "${client[@]}" "$port" 0 1
refuse "${client[@]}" "$port" 1 1x
refuse "${server[@]}" 65536
refuse "${server[@]}" 0 -1
refuse "${server[@]}" 0 0 0
echo "served, and refused what is wrong"
