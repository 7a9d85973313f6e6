# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What ./test, ./run and scripts/*.sh share: building a preset, running its tests, and adding up
# passed, failed and skipped. Sourced, with the working directory at the top of the checkout.

passed=0 failed=0 skipped=0
jobs=$(nproc)
test_jobs=$((3 * jobs)) # most tests wait for most of their time; those that want all CPUs say so (PROCESSORS)
launcher=() # what ctest is started with, if anything
# Whether a compiler warning is an error; not said, a build stays as it is, for a change of this option compiles everything
# again. Out of the environment before a test starts: libthrum reports a variable THRUM_... that it does not know.
warnings_are_errors=(${THRUM_WERROR:+-DTHRUM_WERROR="$THRUM_WERROR"})
unset THRUM_WERROR
not_started='<skipped message="(Unable to find|Required Files|Failed to start|Fixture dep)' # in its report

heading() { printf '\n== %s\n' "$*"; }

# Reads what ninja prints, and says how far it is: on a terminal in one line that is written over, otherwise every 30 s.
show_steps() {
    local line said=$SECONDS
    while IFS= read -r line; do
        [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
        if [[ -t 1 ]]; then
            printf '\r%s of %s steps\033[K' "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
        elif ((SECONDS - said >= 30)); then
            printf '%s of %s steps\n' "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
            said=$SECONDS
        fi
    done
    [[ ! -t 1 ]] || printf '\r\033[K'
}

# build PRESET [cmake -D options]: configures and builds; says how far it is, and more if something is wrong. A compiler
# warning is something wrong where THRUM_WERROR=ON is in the environment, or was when the build was made.
build() {
    local preset=$1 log
    shift
    mkdir -p build
    log=build/$preset.log
    heading "build $preset (takes minutes the first time; $log)"
    if ! cmake --preset "$preset" "${warnings_are_errors[@]}" "$@" >"$log" 2>&1; then
        cat "$log"
        return 1
    fi
    grep -A3 '^CMake Warning' "$log" || true
    if ! (set -o pipefail && cmake --build --preset "$preset" -j "$jobs" 2>&1 | tee "$log" | show_steps); then
        tail -n 100 "$log"
        return 1
    fi
    grep -B1 -A4 'warning:' "$log" || true
    tail -n 1 "$log"
}

# run_tests PRESET [ctest options]: runs the tests of a build and adds its counts up. "Skipped" is what
# says itself that it cannot run here; a test that ctest could not start has failed.
run_tests() {
    local preset=$1 report status=0 tests fails skips not_run
    shift
    report=$PWD/build/$preset.tests.xml
    rm -f "$report"
    heading "test $preset $*"
    "${launcher[@]}" ctest --preset "$preset" -j "$test_jobs" --output-junit "$report" "$@" || status=$?
    if [[ ! -s $report ]]; then
        echo "ctest wrote no report for $preset" >&2
        failed=$((failed + 1))
        return
    fi
    (($(suite_attribute "$report" tests) < 20)) || scripts/slowest.sh "$report" "build/$preset/long-tests.txt" || echo "slowest.sh failed" >&2
    tests=$(suite_attribute "$report" tests)
    fails=$(suite_attribute "$report" failures)
    skips=$(($(suite_attribute "$report" skipped) + $(suite_attribute "$report" disabled)))
    not_run=$(grep -cE "$not_started" "$report" || true)
    skips=$((skips - not_run)) fails=$((fails + not_run))
    if ((status != 0 && fails == 0)); then # nothing failed and yet ctest is not content
        echo "ctest ended with status $status" >&2
        fails=1 tests=$((tests + 1))
    fi
    passed=$((passed + tests - fails - skips))
    failed=$((failed + fails))
    skipped=$((skipped + skips))
}

suite_attribute() { # the number in an attribute of the report's first element
    local value
    value=$(tr '\n\t' '  ' <"$1" | grep -o '<testsuite [^>]*>' | grep -o " $2=\"[0-9]*\"" | tr -dc 0-9) || true
    echo "${value:-0}"
}

# check NAME COMMAND...: a command as one test; 77 is "cannot run here".
check() {
    local name=$1 status=0
    shift
    heading "$name"
    "$@" || status=$?
    case $status in
        0) passed=$((passed + 1)) ;;
        77) skipped=$((skipped + 1)) ;;
        *) failed=$((failed + 1)) && echo "$name FAILED (status $status)" >&2 ;;
    esac
}

# The last line of ./test and of test-all, and their exit status.
summary() {
    printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    ((failed == 0 && passed > 0))
}
