#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The slowest tests of a run, from the report that ctest --output-junit wrote. Called by run_tests (lib.sh).
# Usage: scripts/slowest.sh REPORT [COUNT]
set -euo pipefail
report=$1 count=${2:-10}

# A test case is a line or a few: names and times stand in its first tag, which ctest does not break.
sed -n 's/.*<testcase name="\([^"]*\)".* time="\([0-9.]*\)".*/\2 \1/p' "$report" | sort -rn | head -n "$count" |
    awk 'NR == 1 { print "slowest tests, seconds:" } { printf "%8.1f  %s\n", $1, $2 }'
