#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Is scripts/soak-preempt.sh right in what it takes for a run that counts? A few seconds of it do not: there are too few
# preemptions; and neither does a run in which a mode did not interrupt what it should have, often enough. One of which less
# is asked does. The machine's clock stays as it is.
# Usage: check-soak.sh SOURCES BUILD_FOLDER
set -uo pipefail

if [ $# -ne 2 ]; then
    echo "usage: check-soak.sh SOURCES BUILD_FOLDER" >&2
    exit 2
fi
sources=$1 build=$2 failed=0

# soak OPTION...: of the shortest kind; what it says is in $said, its status in $status.
soak() {
    said=$("$sources/scripts/soak-preempt.sh" "$build" 1 --mode lend,klt --workers 2 --threads 8 --slice 100 \
        --only malloc,stdio,mutexes,throw,deep,floats --no-clock-steps "$@" 2>&1)
    status=$?
}

complain() {
    echo "check-soak.sh: $1; status $status:"
    tail -n 12 <<<"$said"
    failed=1
}

is_refused() { [ $status -eq 1 ] && grep -qE "^does not count: $1\$" <<<"$said"; }

soak
is_refused '[0-9]+ preemptions, not 10000000' || complain "a second is too short, and was not refused"

soak --least-preemptions 1 --least-hits 1000000000
for mode in lend klt; do
    for place in malloc free stdio mutex lock unwinder deep registers; do
        is_refused "$mode: $place was hit [0-9]+ times, not 1000000000" ||
            complain "$place was hit too seldom in mode $mode, and nobody said so"
    done
done

soak --least-preemptions 1 --least-hits 1
{ [ $status -eq 0 ] && ! grep -q 'does not count' <<<"$said"; } || complain "little is asked, and that was refused"

soak --no-such-option
[ $status -eq 2 ] || complain "options are not passed on"
exit $failed
