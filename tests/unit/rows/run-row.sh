#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the test programs of one row of docs/internals/soundness.md, every case a process of its own. Called by ctest.
#
#   run-row.sh plain   ROW LIBRARY PROGRAM...   without thrum: every case passes (glibc is the oracle)
#   run-row.sh thrum   ROW LIBRARY PROGRAM...   under the cache: every case passes
#   run-row.sh skipped ROW LIBRARY PROGRAM...   under the cache with THRUM_SKIP=ROW: the cases marked so fail
#   run-row.sh MODE    ROW LIBRARY PROGRAM...   under bench/alternatives' library with THRUM_ALTERNATIVE=MODE (standby,
#                                               standby-helping, stacks): every case passes as in plain, see THRUM_ROW_MODE in
#                                               check.h
#
# A case fails by exit code, by signal, or by not ending in time. Exit code 77 (cannot run here) of all that would
# have to run makes the whole run 77. Exit code 79 (the premise of the test does not hold: cache not loaded, no reuse)
# is a failure in every mode. THRUM_ROW_EMULATOR may hold a command that starts programs (qemu-user, for cross builds).
set -u

mode=$1 row=$2 library=$3
shift 3

unset "${!THRUM_CACHE_@}" "${!THRUM_ALTERNATIVE@}" THRUM_VERBOSE THRUM_SKIP THRUM_DEBUG_MISSING LD_PRELOAD
ulimit -c 0
limit=30
environment=()
case $mode in
  plain) ;;
  thrum) environment=("LD_PRELOAD=$library" THRUM_ROW_EXPECTED=1) ;;
  skipped)
    limit=10
    # Idle threads end with age, which would hide after some seconds what a row has left out.
    environment=("LD_PRELOAD=$library" THRUM_ROW_EXPECTED=1 "THRUM_SKIP=$row" THRUM_CACHE_MAX_AGE=0)
    ;;
  standby | standby-helping | stacks)
    environment=("LD_PRELOAD=$library" THRUM_ROW_EXPECTED=1 "THRUM_ROW_MODE=$mode" "THRUM_ALTERNATIVE=$mode")
    ;;
  *)
    echo "run-row.sh: mode is plain, thrum, skipped, standby, standby-helping or stacks, not '$mode'" >&2
    exit 2
    ;;
esac
if [[ $mode != plain && ! -r $library ]]; then
  echo "run-row.sh: no library '$library'" >&2
  exit 2
fi

output=$(mktemp) || exit 2
trap 'rm -f "$output"' EXIT

# Starts one case; its exit code is the result, 124 or 137 for one that had to be ended.
run_case() {
  if [[ -n ${THRUM_ROW_EMULATOR:-} ]]; then
    local options=() variable
    for variable in "${environment[@]}"; do options+=(-E "$variable"); done
    # shellcheck disable=SC2086 # a command with its arguments
    timeout -k 2 "$limit" $THRUM_ROW_EMULATOR "${options[@]}" "$1" "$2" </dev/null >"$output" 2>&1
  else
    timeout -k 2 "$limit" env "${environment[@]}" "$1" "$2" </dev/null >"$output" 2>&1
  fi
}

list_cases() {
  # shellcheck disable=SC2086
  ${THRUM_ROW_EMULATOR:-} "$1" --list
}

report() { # verdict, program, case, exit code
  printf '%-7s %s %s (exit %d)\n' "$1" "${2##*/}" "$3" "$4"
  sed 's/^/        /' "$output"
}

failed=0 ran=0 cannot=0
for program in "$@"; do
  if ! cases=$(list_cases "$program") || [[ -z $cases ]]; then
    echo "run-row.sh: $program names no cases" >&2
    exit 2
  fi
  while read -r name when_skipped; do
    if [[ $mode == skipped && $when_skipped != fails ]]; then continue; fi
    { run_case "$program" "$name"; } 2>/dev/null  # silences the shell's own remark on a crash
    code=$?
    verdict=ok
    if ((code == 77)); then
      verdict=cannot cannot=$((cannot + 1))
    elif ((code == 79 || code == 2 || code == 126 || code == 127)); then
      verdict=FAILED
    elif [[ $mode == skipped ]]; then
      ((code != 0)) || verdict=FAILED
    else
      ((code == 0)) || verdict=FAILED
    fi
    [[ $verdict == cannot ]] || ran=$((ran + 1))
    [[ $verdict != FAILED ]] || failed=$((failed + 1))
    report "$verdict" "$program" "$name" "$code"
  done <<<"$cases"
done

echo "row $row, $mode: $ran cases, $failed failed, $cannot cannot run here"
if ((failed)); then
  if [[ $mode == skipped ]]; then
    echo "with THRUM_SKIP=$row these cases must fail (exit code other than 0, 77, 79) and did not"
  fi
  exit 1
fi
if ((ran == 0)); then
  ((cannot)) && exit 77
  echo "nothing was tested"
  exit 1
fi
