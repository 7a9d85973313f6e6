#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A program that is preempted, under perf record, in each safe mode: it ends as it does by itself, and the samples tell
# what it was at.
# Usage: check-perf.sh PROGRAM
#
# Exits with 77 where there is no perf, or the kernel does not let it measure.
set -uo pipefail

if [ $# -ne 1 ]; then
    echo "usage: check-perf.sh PROGRAM" >&2
    exit 2
fi
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export LC_ALL=C

skip() {
    echo "check-perf.sh: skipped: $1"
    exit 77
}

command -v perf >/dev/null || skip "perf is missing (Debian: linux-perf)"
# Of the CPU's clock: virtual machines often have no other counters.
record() {
    timeout -k 5 50 perf record -e cpu-clock:u -o "$folder/data" "$@" >"$folder/said" 2>&1
}
record true || skip "perf may not measure here: $(head -n 1 "$folder/said")"

fail() {
    echo "check-perf.sh: $THRUM_PREEMPT: $1"
    tail -n 20 "$folder/said"
    exit 1
}

for mode in lend own-tls klt; do
    export THRUM_PREEMPT=$mode
    record "$program"
    status=$?
    [ $status -eq 7 ] || fail "the program's status is $status, not 7"
    grep -q '^program: 6 threads have been there' "$folder/said" || fail "the program has not come to its end"
    perf report -i "$folder/data" --stdio >"$folder/said" 2>/dev/null || fail "perf report fails"
    grep -q "%.* barrier" "$folder/said" || fail "no samples in barrier()"
done
