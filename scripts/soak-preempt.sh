#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# make soak-preempt: the torture of preemption (stress-preempt) for an hour: every mode that promises safety, with 1, 2 and
# 8 workers, 8, 32 and 1000 threads, and slices of 50 us, 100 us and 1 ms. Ticks come from timers, and in each fifth of these
# combinations from the monitor; three, four and five have no divisor in common, so that those are of all kinds, and with all
# of malloc's settings, which change from one to the next.
#
# It does not count, and the status says so, unless malloc, free, stdio, the mutexes of pthreads, its rwlocks and spinlocks,
# the unwinder, threads that are deep in their stacks and registers that are all in use were each interrupted at least 1,000
# times in every mode, and there were ten million preemptions in all. Where that takes longer, because others want the CPUs
# too, all is done again, five times at most. A shorter run finds what it finds, and then says that it does not count.
#
# Where the process may (CAP_SYS_TIME) it sets the machine's clock by an hour, for some milliseconds, and puts it back, again
# and again; where it may not a line says so. --no-clock-steps keeps the clock as it is.
# Usage: scripts/soak-preempt.sh [BUILD_FOLDER, build/release unless told] [SECONDS, 3600 unless told]
#                                [options of stress-preempt, as --seed N; the last of a kind is the one that is taken]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${1:-build/release}
shift $(($# > 0))
duration=${1:-3600}
shift $(($# > 0))
[[ $duration =~ ^[1-9][0-9]*$ ]] || { echo "soak-preempt: '$duration' is not a number of seconds" >&2; exit 2; }
program=$folder/tests/stress/stress-preempt
[[ -x $program ]] || { echo "soak-preempt: there is no $program; build it first: make" >&2; exit 2; }

exec "$program" --seconds "$duration" --mode lend,own-tls,klt,none --workers 1,2,8 --threads 8,32,1000 \
    --slice 50,100,1000 --monitor-each 5 --least-hits 1000 --least-preemptions 10000000 --clock-steps "$@"
