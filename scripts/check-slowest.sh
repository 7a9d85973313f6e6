#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The test of slowest.sh: on a made report it prints the ten slowest tests and the reasons. And thrum_takes_long names only
# tests that there are; the manual for contributors names the command for each occasion. A build shows how far it is.
# Usage: scripts/check-slowest.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
source=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
fail() {
    echo "$1"
    status=1
}

for i in 9 21 3 1 2 30 4 5 6 7 8 40; do
    printf '<testcase name="t.%s" classname="t.%s" time="%s.5" status="run">\n' "$i" "$i" "$i"
done >"$work/report"
printf 't.30: it waits: for the clock\n' >"$work/reasons"
cat >"$work/expected" <<'END'
slowest tests, seconds:
    40.5  t.40: its CMake file gives no reason
    30.5  t.30: it waits: for the clock
    21.5  t.21: its CMake file gives no reason
     9.5  t.9
     8.5  t.8
     7.5  t.7
     6.5  t.6
     5.5  t.5
     4.5  t.4
     3.5  t.3
END
"$source/scripts/slowest.sh" "$work/report" "$work/reasons" >"$work/printed"
diff "$work/expected" "$work/printed" || fail "slowest.sh prints something else"
grep -q '^ .* scripts/slowest.sh ' "$source/scripts/lib.sh" || fail "scripts/lib.sh does not call slowest.sh"

export source SHELL=/bin/bash
# shellcheck disable=SC2016 # the other shell's
script -qec 'source "$source/scripts/lib.sh"; printf "%s\n" [1/3] other [2/3] | show_steps' /dev/null </dev/null >"$work/steps"
[[ $(tr '\r' '\n' <"$work/steps" | grep -o '^[0-9]* of [0-9]* steps') == $'1 of 3 steps\n2 of 3 steps' ]] ||
    fail "a build does not show how far it is"

ctest --test-dir "$build" -N >"$work/tests"
[[ -s $build/long-tests.txt ]] || fail "$build/long-tests.txt names no test"
while IFS=: read -r test _; do
    grep -q ": $test\$" "$work/tests" || fail "thrum_takes_long names $test, which is no test"
done <"$build/long-tests.txt"

for row in "while working.*make check" "before a commit.*\./test" "called done.*make test-all"; do
    grep -q "^| .*$row" "$source/CONTRIBUTING.md" || fail "CONTRIBUTING.md has no row for: $row"
done
for target in check test-all; do
    grep -q "^$target:" "$source/Makefile" || fail "there is no make $target"
done
exit $status
