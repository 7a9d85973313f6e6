#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Other stressors of stress-ng: those on thread synchronisation and signals, and those that have helper
# threads at work while they torment the kernel. Called by ctest.
# (Debian 12's stress-ng imports no pthread_cancel, so it has no stressor for it: cancel-storm.sh.)
# shellcheck source=tests/programs/lib.sh
source "$(dirname "$0")/lib.sh"
need stress-ng stress-ng
normalise() { sed -E '/finished prematurely/d; s/\[[0-9]+\]/[PID]/; s/(run completed in) [0-9.]+.*/\1 SECONDS/'; }

# Few threads each, most of them alive until the end: only equality is asked.
for stressor in futex:50000 nanosleep:300 close:2000 sigq:20000 aio:500 poll:2000 procfs:200; do
  name=${stressor%:*}
  both stress-ng "--$name" 2 "--$name-ops" "${stressor#*:}" --timeout 20 --verify
done
both stress-ng --malloc 1 --malloc-pthreads 4 --malloc-ops 20000 --timeout 20 --verify
both stress-ng --fork 1 --fork-ops 300 --timeout 20 --verify
both stress-ng --sem 1 --sem-procs 6 --membarrier 2 --timeout 1 --verify # these two end by time, not by count
# So must this: its threads are SCHED_FIFO, and the first could come to the end of a count before the one that creates
# them got the CPU back; stress-ng then says that it could not create any.
both stress-ng --mutex 1 --mutex-procs 6 --timeout 1 --verify

# 2 workers with up to 64 threads that sleep; each worker makes them once.
both stress-ng --sleep 2 --sleep-max 64 --sleep-ops 2000 --timeout 20 --verify
[[ -s thrum.summary ]] || fail "no summary: was the cache loaded?"
(($(total created) >= 64)) || fail "only $(total created) threads seen by the cache"
