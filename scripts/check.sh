#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# make check: what to run while working, in a minute and a half after a change of one file. Builds, runs the unit tests of
# the release build that the changed files concern, and looks over these files: their format, clang-tidy, the order of
# folders. The changed files are those that differ from the last commit; where nothing differs, those that it changed.
# Suites that take more than 5 s (tests/costs.txt) are left to ./test.
# Usage: scripts/check.sh [ctest options]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

most=5 # seconds that a suite may take here

# suites_of: what the names of the suites begin with that the changed files concern; the files are read.
suites_of() {
    local file
    while read -r file; do
        case $file in
            cli/* | stat/* | tests/unit/cli/* | tests/programs/*) echo cli ;;
            src/kthread/libc.c | src/kthread/fresh/*) printf '%s\n' base alternatives ult abt ;;
            src/inspect/*) printf '%s\n' ult abt cli ;;
            include/* | tests/package/*) printf '%s\n' base ult abt package ;;
            docs/*) printf '%s\n' package cli ;;
            cache/* | src/kthread/* | tests/unit/base/*) printf '%s\n' base alternatives ;;
            bench/alternatives/*) printf '%s\n' alternatives bench ;;
            bench/* | examples/*) echo "${file%%/*}" ;;
            abt/* | tests/unit/abt/*) echo abt ;;
            src/* | tests/*) printf '%s\n' base ult abt ;;
        esac
    done
    echo build
}

if ! { command -v git && git rev-parse --git-dir; } >/dev/null 2>&1; then
    echo "make check: needs git and its repository, which name the changed files; ./test does not" >&2
    exit 1
fi
scripts/setup.sh test
[[ -x build/release/tests/unit/cli/cli-test ]] ||
    echo "The tests are built first, which takes some six minutes on two CPUs; later calls take a minute or so."
build release
suites=$(scripts/lint.sh --list-changed | suites_of | sort -u | paste -sd'|')
long=$(awk -v most=$most -v suites="^($suites)[.]" '$3 > most && $1 ~ suites { print $1 }' tests/costs.txt | paste -sd'|')
echo "suites of ${suites//|/, }; those of more than $most s are left to ./test"
run_tests release -L unit -LE 'heavy|debug' -R "^($suites)\\." -E "^(${long:-none})\$" "$@"
check "lint of the changed files" scripts/lint.sh --changed
summary
