#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The slowest tests of a run, from the report that ctest --output-junit wrote. Called by run_tests (lib.sh).
# Usage: scripts/slowest.sh REPORT [COUNT]
set -euo pipefail
report=$1 count=${2:-10}

# awk reads to the end: sort would die of SIGPIPE if its reader, for example head, ended early.
# A test case is a line or a few: names and times stand in its first tag, which ctest does not break.
sed -n 's/.*<testcase name="\([^"]*\)".* time="\([0-9.]*\)".*/\2 \1/p' "$report" | sort -rn |
    awk -v count="$count" 'NR == 1 { print "slowest tests, seconds:" } NR <= count { printf "%8.1f  %s\n", $1, $2 }'
