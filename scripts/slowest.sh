#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The ten slowest tests of a run, from the report that ctest --output-junit wrote, and why those of over 20 seconds take so
# long, from the list that cmake/ThrumLongTests.cmake writes. Called by run_tests (lib.sh).
# Usage: scripts/slowest.sh REPORT REASONS
set -euo pipefail
report=$1 reasons=$2
[[ -f $reasons ]] || reasons=/dev/null

# awk reads to the end: sort would die of SIGPIPE if its reader, for example head, ended early.
# A test case is a line or a few: names and times stand in its first tag, which ctest does not break.
sed -n 's/.*<testcase name="\([^"]*\)".* time="\([0-9.]*\)".*/\2 \1/p' "$report" | sort -rn |
    awk -v reasons="$reasons" '
        BEGIN {
            while ((getline line <reasons) > 0) {
                at = index(line, ": ")
                why[substr(line, 1, at - 1)] = substr(line, at + 2)
            }
        }
        NR == 1 { print "slowest tests, seconds:" }
        NR <= 10 {
            text = $2 in why ? why[$2] : "its CMake file gives no reason"
            printf "%8.1f  %s%s\n", $1, $2, ($1 > 20 ? ": " text : "")
        }'
