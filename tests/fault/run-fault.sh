#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs a program that a fault happens to, without thrum and under it, and compares what it says: lines "same:" must be
# equal, the numbers of lines "more:" may only grow. Called by ctest.
#
#   run-fault.sh LIBRARY PROGRAM WHAT [INJECT KIND EVERY]
#
# Without LIBRARY ("none") only the plain run is made. Exit code 77 where the fault cannot be made here.
set -u

library=$1 program=$2 what=$3
shift 3
injector=("$@")
unset "${!THRUM_CACHE_@}" THRUM_VERBOSE THRUM_SKIP THRUM_DEBUG_MISSING LD_PRELOAD
ulimit -c 0
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT

# One run; its output in a file of this name.
run() {
  local name=$1
  shift
  timeout -k 5 60 "${injector[@]}" /usr/bin/env "$@" "$program" "$what" </dev/null >"$folder/$name" 2>"$folder/$name.err"
  local code=$?
  echo "--- $name (exit $code)"
  cat "$folder/$name" "$folder/$name.err"
  return $code
}

run plain THRUM_FAULT=1
code=$?
((code != 77)) || exit 77
((code == 0)) || { echo "fails without thrum already"; exit 1; }
[[ $library != none ]] || exit 0

run thrum "LD_PRELOAD=$library" || { echo "fails under thrum only"; exit 1; }

worse=$(awk '
  $1 == "more:" && NR == FNR { plain[$2] = $3; lines++; next }
  $1 == "more:"              { seen++; if ($3 + 0 < plain[$2] + 0) print $2 ": " $3 " instead of " plain[$2]; next }
  $1 == "same:" && NR == FNR { text[$0] = 1; lines++; next }
  $1 == "same:"              { seen++; if (!($0 in text)) print "not so without thrum: " $0; next }
  END { if (seen != lines || lines == 0) print lines + 0 " lines without thrum, " seen + 0 " under it" }
' "$folder/plain" "$folder/thrum")
if [[ -n $worse ]]; then
  printf 'worse under thrum:\n%s\n' "$worse"
  exit 1
fi
