#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# stress-ng's pthread stressor: threads by the dozen that start, poke at thread-specific system calls
# (set_robust_list, set_tid_address, setns, tgkill ...), wait together, end and are joined. Called by ctest.
# shellcheck source=tests/programs/lib.sh
source "$(dirname "$0")/lib.sh"
need stress-ng stress-ng

# Process ids and times differ from run to run.
normalise() { sed -E '/finished prematurely/d; s/\[[0-9]+\]/[PID]/; s/(run completed in) [0-9.]+.*/\1 SECONDS/'; }

both stress-ng --pthread 2 --pthread-max 48 --pthread-ops 6000 --timeout 40
# 6,000 threads in rounds of at most 48 a worker: all but the first rounds can be served by idle threads.
expect_reused 4500
