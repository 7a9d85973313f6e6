# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What the tests of this folder have in common; each sources it first. Such a test runs an unmodified
# program twice, without thrum and under `thrum run --verbose`, and compares what a user of the program
# sees: standard output, standard error, exit code. The lines of the summary ("thrum: ...") are taken out
# of standard error before that, and say whether threads were really reused.
#
# In:  $THRUM, the command of the build tree (set by ctest, or by hand).
# Out: exit code 0 passed, 1 failed with what differs on standard output, 77 cannot run here.
set -u

: "${THRUM:?THRUM must name the thrum command, e.g. THRUM=build/release/bin/thrum}"
THRUM=$(readlink -f "$THRUM")
test_name=$(basename "$0" .sh)
# shellcheck disable=SC2034 # for the tests: this folder
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
unset LD_PRELOAD THRUM_VERBOSE "${!THRUM_CACHE_@}"
export LC_ALL=C TZ=UTC
ulimit -c 0

work=$(mktemp -d "${TMPDIR:-/tmp}/thrum-programs.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# The longest that one run of a program may take, in seconds.
limit=${limit:-60}

skip() {
  echo "$test_name: skipped: $*"
  exit 77
}

fail() {
  echo "$test_name: FAILED: $*"
  local file
  for file in plain.out plain.err thrum.out thrum.err thrum.summary; do
    [[ -s $file ]] || continue
    echo "--- last lines of $file"
    tail -n 25 "$file"
  done
  exit 1
}

# need PROGRAM PACKAGE: a command or a file that has to be there.
need() {
  if [[ $1 == */* ]]; then
    [[ -e $1 ]] || skip "$1 is missing (Debian: $2)"
  else
    command -v "$1" >/dev/null || skip "$1 is missing (Debian: $2)"
  fi
}

# need_built FILE PACKAGE: a program of this folder, left out of the build when PACKAGE was missing.
need_built() {
  local missing
  [[ -x $1 ]] || skip "${1##*/} was not built (needs Debian's $2; configure again)"
  missing=$(ldd "$1" 2>/dev/null | awk '/not found/ { print $1 }')
  [[ -z $missing ]] || skip "${1##*/} was built with ${missing//$'\n'/, }, which is not here"
}

# Takes out of the output what differs from run to run; a test replaces it where there is such a thing.
normalise() { cat; }

# run NAME COMMAND...: leaves NAME.out, NAME.err, NAME.summary and NAME.code.
run() {
  local name=$1
  shift
  timeout -k 5 "$limit" "$@" >"$name.raw" 2>"$name.raw-err" </dev/null
  echo $? >"$name.code"
  normalise <"$name.raw" >"$name.out"
  grep -v '^thrum: ' "$name.raw-err" | normalise >"$name.err"
  grep '^thrum: ' "$name.raw-err" >"$name.summary"
  [[ $(<"$name.code") != 124 && $(<"$name.code") != 137 ]] ||
    fail "$name: not done after $limit s: $*"
}

run_plain() { run plain "$@"; }
run_thrum() { run thrum "$THRUM" run --verbose -- "$@"; }

# Both runs gave the same, and that was a success.
expect_same() {
  [[ $(<plain.code) == 0 ]] || fail "exit code $(<plain.code) without thrum"
  [[ $(<thrum.code) == "$(<plain.code)" ]] ||
    fail "exit code $(<thrum.code) under thrum, $(<plain.code) without"
  diff plain.out thrum.out >out.diff || { cat out.diff && fail "standard output differs"; }
  diff plain.err thrum.err >err.diff || { cat err.diff && fail "standard error differs"; }
}

# total COUNTER: the sum of created, reused, retired or "passed through" over all processes of the run. Of several processes
# there is a table, of one a line.
total() {
  local column
  case $1 in created) column=4 ;; reused) column=5 ;; retired) column=6 ;; *) column=8 ;; esac
  awk -v column="$column" '$2 == "together" { print $column; found = 1 } END { exit !found }' thrum.summary && return
  sed -n "s/^thrum: pid .*[ :]$1 \([0-9]*\)\(,.*\)\?$/\1/p" thrum.summary | awk '{ n += $1 } END { print n + 0 }'
}

# expect_reused MINIMUM: the run under thrum was served by idle threads at least that often.
expect_reused() {
  [[ -s thrum.summary ]] || fail "no summary: was the cache loaded?"
  local reused
  reused=$(total reused)
  ((reused >= $1)) || fail "$reused threads reused, expected at least $1"
  echo "$test_name: created $(total created), reused $reused, retired $(total retired)," \
    "passed through $(total 'passed through')"
}

# both COMMAND...: the usual case in one word.
both() {
  run_plain "$@"
  run_thrum "$@"
  expect_same
}
