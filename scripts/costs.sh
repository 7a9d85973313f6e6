#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Writes tests/costs.txt: the tests of the last ./test that took longer than a second, for new build folders to begin with.
# Usage: scripts/costs.sh [BUILD-FOLDER]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

remembered=${1:-build/release}/Testing/Temporary/CTestCostData.txt
[[ -r $remembered ]] || { echo "costs.sh: no $remembered; run ./test first" >&2; exit 1; }
{
    sed '/^---$/,$d' "$remembered" | awk '$3 > 1 { printf "%s 1 %.0f\n", $1, $3 }' | LC_ALL=C sort
    echo ---
} >tests/costs.txt
echo "$(($(wc -l <tests/costs.txt) - 1)) tests in tests/costs.txt"
