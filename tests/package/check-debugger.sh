#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A program that is preempted, under gdb, in each safe mode: a breakpoint in a user-level thread is hit, its backtrace is
# whole, and the program goes on to its end; and one that runs already is attached to, looked at, and goes on.
# Usage: check-debugger.sh PROGRAM
#
# Exits with 77 where there is no gdb, or it may not trace.
set -uo pipefail

if [ $# -ne 1 ]; then
    echo "usage: check-debugger.sh PROGRAM" >&2
    exit 2
fi
program=$1
command -v gdb >/dev/null || { echo "check-debugger.sh: skipped: gdb is missing (Debian: gdb)"; exit 77; }
folder=$(mktemp -d)
child=
trap '[ -z "$child" ] || kill -KILL "$child" 2>/dev/null; rm -rf "$folder"' EXIT
export LC_ALL=C

fail() {
    echo "check-debugger.sh: $THRUM_PREEMPT: $1"
    tail -n 40 "$folder/said"
    exit 1
}

# debug COMMANDS [ARGUMENT OF gdb...]: what it says is in FOLDER/said.
debug() {
    {
        printf '%s\n' 'set pagination off' 'set confirm off' 'set width 0' 'set debuginfod enabled off' \
            'handle SIG38 nostop noprint pass'
        cat
    } >"$folder/commands"
    timeout -k 5 50 gdb -nx -batch -x "$folder/commands" "$@" </dev/null >"$folder/said" 2>&1
    if grep -qi 'not permitted' "$folder/said"; then
        echo "check-debugger.sh: skipped: gdb may not trace here"
        exit 77
    fi
}

# The frames between two marks: from the function that was looked for to the library's that called the thread's.
backtrace_is_whole() {
    sed -n '/^== backtrace$/,/^== go on$/p' "$folder/said" >"$folder/frames"
    grep -q '^#1 .* compute ' "$folder/frames" || fail "frame 1 is not compute()"
    grep -q '^#[2-4] .* unit_main ' "$folder/frames" || fail "the backtrace does not reach the thread's beginning"
    ! grep -qE 'Backtrace stopped|corrupt' "$folder/frames" || fail "the backtrace is broken"
}

from_the_start() {
    debug --args "$program" <<'G'
tbreak marker
run
echo == backtrace\n
backtrace
echo == go on\n
continue
G
    grep -q 'hit Temporary breakpoint 1, marker\|Temporary breakpoint 1, .*marker' "$folder/said" ||
        fail "the breakpoint was not hit"
    backtrace_is_whole
    grep -q 'program: 6 threads have been there' "$folder/said" || fail "the program has not come to its end"
    grep -q 'exited with code 07' "$folder/said" || fail "the program's status is not 7"
}

while_it_runs() {
    : >"$folder/output"
    "$program" wait >"$folder/output" &
    child=$!
    for ((i = 0; i < 300; i++)); do
        grep -q 'all wait' "$folder/output" && break
        sleep 0.1
    done
    debug -p "$child" <<'G'
echo == threads\n
info threads
thread apply all backtrace 20
set variable leave = 1
detach
G
    [ "$(grep -c 'Thread 0x' "$folder/said")" -ge 3 ] || fail "gdb does not list the program's kernel threads"
    grep -q ' compute (' "$folder/said" || fail "no thread is seen in compute()"
    wait "$child"
    local status=$?
    child=
    [ $status -eq 7 ] || fail "the program's status is $status, not 7, after it was attached to"
    grep -q '^program: 6 threads have been there' "$folder/output" || fail "the program has not come to its end"
}

for mode in lend own-tls klt; do
    export THRUM_PREEMPT=$mode
    from_the_start
    while_it_runs
done
