#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# make soak: the debug build's tests again and again, in another order each time, until the time is up or one
# fails. Any failure counts, however rare: a test that fails once in a thousand rounds has found something.
# Usage: scripts/soak.sh [SECONDS, 600 unless told] [ctest options]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

duration=${1:-600}
[[ $duration =~ ^[1-9][0-9]*$ ]] || { echo "soak: '$duration' is not a number of seconds" >&2; exit 2; }
shift $(($# > 0))

scripts/setup.sh test
build debug
end=$((SECONDS + duration)) rounds=0
while ((SECONDS < end && failed == 0)); do
    run_tests debug -LE heavy --schedule-random --stop-on-failure "$@" >build/soak.log 2>&1
    rounds=$((rounds + 1))
    printf '\r%d rounds, %d tests passed' "$rounds" "$passed"
done
((failed == 0)) || { echo; cat build/soak.log; }
summary
