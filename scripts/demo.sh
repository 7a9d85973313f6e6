#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The main job on real input, called by ./run: two unmodified programs that create threads all the time, in turns
# without and with `thrum run`, and what came of it.
#
#   scripts/demo.sh [BUILD-DIRECTORY]     build/release unless given
#
#   stress-ng --pthread             threads in rounds of 32: made, meeting in a condition variable, ended, joined
#   python3 -m http.server          a thread for every connection; wrk on the loopback interface opens them
#
# Every figure is the median of the rounds; DEMO_ROUNDS (3) and DEMO_SECONDS (4) change their number and length.
set -u
cd "$(dirname "$0")/.." || exit 1

build=${1:-build/release}
thrum=$build/bin/thrum
rounds=${DEMO_ROUNDS:-3}
seconds=${DEMO_SECONDS:-4}
export LC_ALL=C
unset LD_PRELOAD THRUM_VERBOSE "${!THRUM_CACHE_@}" "${!PYTHON@}"

[[ $rounds =~ ^[1-9][0-9]?$ && $seconds =~ ^[1-9][0-9]?$ ]] || {
    echo "demo.sh: DEMO_ROUNDS and DEMO_SECONDS are whole numbers from 1 to 99" >&2
    exit 2
}
if [[ ! -x $thrum ]]; then
    echo "demo.sh: no $thrum: build first (cmake --preset release && cmake --build --preset release)" >&2
    exit 1
fi

# Debian's interpreter, whatever else is on the PATH.
python=/usr/bin/python3
missing=()
command -v stress-ng >/dev/null || missing+=(stress-ng)
[[ -x $python ]] || missing+=(python3)
command -v wrk >/dev/null || missing+=(wrk)
if ((${#missing[@]})); then
    echo "Missing for the demonstration: apt-get install ${missing[*]}"
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/thrum-demo.XXXXXX") || exit 1
server=''
cleanup() {
    [[ -z $server ]] || kill -KILL "$server" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

ticks=$(getconf CLK_TCK)

fail() {
    echo "demo.sh: $*" >&2
    grep -v "metrc:" "$work/log" | tail -n 8 >&2
    exit 1
}

# under VARIANT COMMAND...: with thrum or plainly, in place of this shell (so that $! is the program).
under() {
    local variant=$1
    shift
    if [[ $variant == thrum ]]; then exec "$thrum" run --verbose -- "$@"; else exec "$@"; fi
}

# The threads created and reused by all processes of the last run. Without thrum they are not counted.
threads_of_summary() { # VARIANT
    [[ $1 == thrum ]] || { echo - -; return; }
    # Of several processes there is a table, with their sums in its line "together".
    if grep -q '^thrum: *together ' "$work/log"; then
        awk '$1 == "thrum:" && $2 == "together" { print $4, $5 }' "$work/log"
        return
    fi
    grep -o 'created [0-9]*, reused [0-9]*' "$work/log" |
        awk '{ created += $2; reused += $4 } END { print created + 0, reused + 0 }'
}

# Both workloads add a line to $work/<workload>.<variant>: operations a second, CPU microseconds an operation, kernel
# threads created, threads reused.

run_stress() { # VARIANT
    # A fixed number of threads, which takes about as long as asked for where 4,000 a second are made.
    (under "$1" stress-ng --pthread 1 --pthread-max 32 --pthread-ops $((seconds * 4000)) \
        --timeout $((seconds * 2)) --metrics) >"$work/log" 2>&1 ||
        fail "stress-ng ended with status $?"
    # ... pthread  BOGO-OPS  REAL-TIME  USER  SYSTEM  OPS/S ...
    sed -n 's/.*metrc: \[[0-9]*\] pthread  *\([0-9]\)/\1/p' "$work/log" |
        awk -v threads="$(threads_of_summary "$1")" 'NF >= 5 && $1 > 0 && $2 > 0 && !done {
            print $1 / $2, ($3 + $4) * 1e6 / $1, threads; done = 1 }' >>"$work/stress.$1"
}

cpu_ticks() { # PID: user and system time of the process so far
    sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'
}

port_of_server() {
    local i port
    for ((i = 0; i < 100; i++)); do
        port=$(sed -n 's/^Serving HTTP on .* port \([0-9]*\).*/\1/p' "$work/port")
        if [[ -n $port ]]; then
            echo "$port"
            return 0
        fi
        kill -0 "$server" 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}

run_http() { # VARIANT
    local port before after requests
    # Port 0: the kernel picks a free one. A shell starts background programs with SIGINT ignored; the server is to end
    # by it as from a terminal, and so in an orderly way.
    : >"$work/port"
    (under "$1" env --default-signal=INT "$python" -u -m http.server --bind 127.0.0.1 --directory "$work/site" 0) \
        >"$work/port" 2>"$work/log" &
    server=$!
    port=$(port_of_server) || fail "the web server did not start"
    before=$(cpu_ticks "$server")
    wrk -t 1 -c 8 -d "${seconds}s" "http://127.0.0.1:$port/index.html" >"$work/wrk" 2>&1 || fail "wrk ended with status $?"
    after=$(cpu_ticks "$server")
    kill -INT "$server"
    wait "$server" 2>/dev/null
    server=''
    grep -q 'Non-2xx' "$work/wrk" && fail "the web server gave errors"
    requests=$(awk '/requests in/ { print $1 }' "$work/wrk")
    ((requests > 0)) || fail "the web server answered no request"
    awk '/^Requests\/sec:/ { print $2 }' "$work/wrk" |
        awk -v ticks=$((after - before)) -v hertz="$ticks" -v n="$requests" -v threads="$(threads_of_summary "$1")" \
            '{ print $1, ticks / hertz * 1e6 / n, threads }' >>"$work/http.$1"
}

median() { # WORKLOAD VARIANT COLUMN; "-" where that is not known
    sort -g -k "$3,$3" "$work/$1.$2" | awk -v c="$3" '{ v[NR] = $c }
        END { if (v[1] == "-") print "-"; else print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

whole() { # NUMBER, or "-"
    if [[ $1 == - ]]; then echo -; else printf '%.0f' "$1"; fi
}

# line WORKLOAD TITLE UNIT: two lines of the table.
line() {
    local variant
    for variant in plain thrum; do
        printf '%-24s %-14s %12.0f %-11s %11.1f %10s %10s\n' "$2" \
            "$([[ $variant == thrum ]] && echo 'thrum run' || echo 'without')" "$(median "$1" $variant 1)" "$3" \
            "$(median "$1" $variant 2)" "$(whole "$(median "$1" $variant 3)")" "$(whole "$(median "$1" $variant 4)")"
    done
}

# verdict WORKLOAD: a difference counts when every round under thrum lies on the same side of every round without, and
# the medians are at least 3 % apart.
verdict() {
    awk 'FNR == 1 { file++ }
        { v = $1; if (!(file in low) || v < low[file]) low[file] = v; if (v > high[file]) high[file] = v }
        END { print low[1], high[1], low[2], high[2] }' "$work/$1.plain" "$work/$1.thrum" |
        awk -v plain="$(median "$1" plain 1)" -v thrum="$(median "$1" thrum 1)" '{
            ratio = thrum / plain
            if ($3 > $2 && ratio >= 1.03) word = "faster"
            else if ($4 < $1 && ratio <= 0.97) word = "slower"
            else if (ratio >= 1.03 || ratio <= 0.97) word = "undecided, since rounds with and without overlap"
            else word = "no difference"
            printf "%s (%.2f times the rate)", word, ratio }'
}

cpu_verdict() { # WORKLOAD
    awk -v plain="$(median "$1" plain 2)" -v thrum="$(median "$1" thrum 2)" \
        'BEGIN { if (plain > 0) printf "%.2f times the CPU time", thrum / plain; else printf "CPU time too short to tell" }'
}

stress='' http=''
command -v stress-ng >/dev/null && stress=yes
[[ -x $python ]] && command -v wrk >/dev/null && http=yes
[[ $stress || $http ]] || exit 1

mkdir "$work/site"
echo '<!doctype html><title>thrum</title><p>A thread should be light until it has to be heavy.' >"$work/site/index.html"

# On a terminal one line that is written over, otherwise a line for each run.
now_runs() { # ROUND VARIANT WORKLOAD
    local with=with line
    [[ $2 == thrum ]] || with=without
    line="round $(($1 + 1)) of $rounds, $with thrum: $3"
    if [[ -t 1 ]]; then printf '\r%s\033[K' "$line"; else echo "$line"; fi
}

# stress-ng makes a number of threads, so that a run is shorter than requested on a quick machine, and longer on a busy one.
programs=0
[[ -z $stress ]] || programs=$((programs + 1))
[[ -z $http ]] || programs=$((programs + 1))
minutes=$(((2 * rounds * programs * seconds + 30) / 60))
case $minutes in
    0) duration='less than a minute' ;;
    1) duration='about a minute' ;;
    *) duration="about $minutes minutes" ;;
esac
echo "Unmodified programs without and with thrum: $rounds alternating rounds of $seconds s each, on $(nproc) CPUs."
echo "This takes $duration."
for ((round = 0; round < rounds; round++)); do
    # The order alternates from round to round, so that a drift of the machine favours neither.
    if ((round % 2)); then order=(thrum plain); else order=(plain thrum); fi
    for variant in "${order[@]}"; do
        if [[ $stress ]]; then
            now_runs $round "$variant" 'stress-ng --pthread'
            run_stress "$variant"
        fi
        if [[ $http ]]; then
            now_runs $round "$variant" 'python3 -m http.server'
            run_http "$variant"
        fi
    done
done
[[ ! -t 1 ]] || printf '\r\033[K'

printf '\n%-24s %-14s %12s %-11s %11s %10s %10s\n' program '' rate '' 'CPU us/op' 'created' 'reused'
printf '%-24s %-14s %12s %-11s %11s %10s %10s\n' '' '' '' '' '' threads threads
[[ -z $stress ]] || line stress 'stress-ng --pthread' threads/s
[[ -z $http ]] || line http 'python3 -m http.server' requests/s
echo
sentence=
[[ -z $stress ]] || sentence="stress-ng --pthread: $(verdict stress), $(cpu_verdict stress) a thread"
[[ -z $http ]] || sentence+="${sentence:+; }python3 -m http.server: $(verdict http), $(cpu_verdict http) a request"
echo "With thrum, $sentence."
printf '\nThe command is %s; try: %s run --verbose -- PROGRAM\n' "$thrum" "$thrum"
