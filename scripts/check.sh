#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# make check: what to run while working, in a minute and a half after a change of one file. Builds what the unit tests need,
# runs those of the release build, and looks over the files that have changed since the last commit (of a clean tree: in
# it): their format, clang-tidy, the order of folders.
# Usage: scripts/check.sh [ctest options]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

scripts/setup.sh test
build release
run_tests release -L unit -LE 'heavy|debug' "$@"
check "lint of the changed files" scripts/lint.sh --changed
summary
