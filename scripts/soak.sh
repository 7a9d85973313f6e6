#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# make soak-tests: the debug build's tests again and again, in another order each round, until the time is up or one
# fails. Any failure counts, however rare: a test that fails once in a thousand rounds has found something.
# Usage: scripts/soak.sh [SECONDS, 600 unless told] [ctest options that choose tests, as -R or -L]
#
# A tenth of the time goes to random graphs of user-level threads (stress-ult), if no tests are chosen: as a test they have
# three seconds.
#
# The time begins when all is set up and built. It is looked at whenever a few tests have ended, one for each CPU, so
# that the last of them may end late by as long as a test takes: seconds, for most.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

duration=${1:-600}
[[ $duration =~ ^[1-9][0-9]*$ ]] || { echo "soak: '$duration' is not a number of seconds" >&2; exit 2; }
shift $(($# > 0))

echo "soak: installing what is missing and building first; the $duration seconds begin after that"
scripts/setup.sh test
build debug

mapfile -t names < <(ctest --preset debug -N -LE heavy "$@" | sed -n 's/^ *Test *#[0-9]*: \(.*[^ ]\) *$/\1/p')
((${#names[@]})) || { echo "soak: no such tests" >&2; exit 1; }

# On a terminal one line that is written over, otherwise a line a minute.
said=-60
say() {
    local line="soak: $((SECONDS - begin)) of $duration s, round $rounds, $passed passed: $1"
    if [[ -t 1 ]]; then
        printf '\r%s\033[K' "${line:0:$((${COLUMNS:-80} - 1))}"
    elif ((SECONDS - said >= 60)); then
        echo "$line"
        said=$SECONDS
    fi
}

graphs() {
    local seconds=$((duration >= 30 ? duration / 10 : 3)) program=build/debug/tests/stress/stress-ult
    [[ -x $program ]] || return 0
    say "stress-ult for $seconds s"
    if "${launcher[@]}" "$program" --seconds "$seconds" >build/soak.log 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
}

begin=$SECONDS rounds=0
(($# > 0)) || graphs
while ((SECONDS - begin < duration && failed == 0)); do
    rounds=$((rounds + 1))
    mapfile -t order < <(shuf -e -- "${names[@]}")
    for ((at = 0; at < ${#order[@]} && SECONDS - begin < duration && failed == 0; at += jobs)); do
        batch=("${order[@]:at:jobs}")
        say "${batch[*]}"
        pattern=$(printf '%s\n' "${batch[@]}" | sed 's/[^A-Za-z0-9_-]/\\&/g' | paste -sd '|')
        run_tests debug -R "^($pattern)\$" --stop-on-failure >build/soak.log 2>&1
    done
done
[[ ! -t 1 ]] || echo
((failed == 0)) || cat build/soak.log
echo "soak: $((SECONDS - begin)) s, round $rounds of ${#names[@]} tests"
summary
