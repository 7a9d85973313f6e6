#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the manual pages; called by ctest. groff has nothing to complain about; every option that `thrum COMMAND --help`
# names stands in the command's page, and every variable that a library reads in that library's.
#
#   check-man.sh FOLDER THRUM
set -u
folder=$1 thrum=$2
failed=0

for page in "$folder"/*.[137]; do
  warnings=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
  if [[ -n $warnings ]]; then
    printf '%s\n%s\n' "$page:" "$warnings"
    failed=1
  fi
done

for command in run compare counters ps stat trace; do
  page=$folder/thrum-$command.1
  options=$("$thrum" "$command" --help | grep -oE '(^| |,)--[a-z][a-z-]*' | grep -oE -- '--[a-z-]+' | sort -u)
  [[ -n $options ]] || {
    echo "thrum $command --help names no option"
    failed=1
  }
  for option in $options; do
    grep -qF -- "${option//-/\\-}" "$page" || {
      echo "$page does not describe $option"
      failed=1
    }
  done
done

for variable in $({ "$thrum" run --help; "$thrum" compare --help; } | grep -oE 'THRUM_[A-Z_]+' | sort -u); do
  grep -qF "$variable" "$folder/libthrum-cache.7" || {
    echo "libthrum-cache.7 does not describe $variable"
    failed=1
  }
done

mapfile -t variables < <(grep -rhoE 'getenv\("THRUM_[A-Z_]+' "$folder/../../src/runtime" | cut -d'"' -f2 | sort -u)
((${#variables[@]})) || failed=1
for variable in "${variables[@]}"; do
  grep -qF "$variable" "$folder/libthrum.7" || {
    echo "libthrum.7 does not describe $variable"
    failed=1
  }
done
exit "$failed"
