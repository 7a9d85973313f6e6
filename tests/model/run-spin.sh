#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Searches one model exhaustively with Spin, on one core, and says what it found in one line.
#
#   run-spin.sh [--part | --cycles | --violated] MODEL [-D...]
#
#   (neither)    passes if no assertion fails, no process waits for ever, and each line of the model was reached.
#                A line that says "unreached: fine" is let off.
#   --part       likewise, but some lines are for others of the model's sizes
#   --cycles     passes if no execution goes on for ever (the models mark no progress, so any cycle counts)
#   --violated   passes if Spin finds an assertion that fails or a process that waits for ever: for a model with
#                something left out
#
# A search that does not come to its end (depth, memory, time) never passes. Exit status 0, 1, or 77 without Spin.
# Environment: KEEP=DIR keeps the checker, its output and the trail there. SPIN_DEEP=1: the search is known to be long.
set -u

mode=--safe
case ${1-} in
--part | --cycles | --violated) mode=$1; shift ;;
esac
if [ $# -eq 0 ]; then
    echo "usage: run-spin.sh [--part | --cycles | --violated] MODEL [-D...]" >&2
    exit 1
fi
model=$1
shift
what="$model${*:+ $*}"
source=$(dirname "$(readlink -f "$0")")/$model.pml

fail() {
    echo "run-spin.sh: $what: $1"
    exit 1
}

for tool in spin gcc; do
    if ! command -v "$tool" >/dev/null; then
        echo "run-spin.sh: skipped: $tool is not installed"
        exit 77
    fi
done
[ -f "$source" ] || fail "no such model: $source"

if [ -n "${KEEP-}" ]; then
    work=$KEEP
    mkdir -p "$work" || exit 1
else
    work=$(mktemp -d) || exit 1
    trap 'rm -rf "$work"' EXIT
fi
cp "$source" "$work/" && cd "$work" || exit 1

how=-DSAFETY
search=()
if [ "$mode" = --cycles ]; then
    how=-DNP
    search=(-l)
fi
spin "$@" -a "$model.pml" >spin.out 2>&1 && [ -s pan.c ] && ! grep -q Error spin.out ||
    fail "Spin does not accept it: $(grep -m 1 Error spin.out)"

# search_with COMPILER OPTIMISATION SECONDS OPTION...: the checker's; seconds are of CPU time, so that what other processes do
# decides nothing.
search_with() {
    "${@:1:2}" -w -DCOLLAPSE -DMEMLIM=2000 "$how" -o pan pan.c >compiler.out 2>&1 ||
        fail "pan.c does not compile: $(head -1 compiler.out)"
    status=0
    (ulimit -t "$3" && ./pan "${search[@]}" "${@:4}" || exit) >pan.out 2>&1 || status=$?
}

came_to_its_end() {
    [ "$status" = 0 ] && ! grep -q -e 'Search not completed' -e 'max search depth too small' -e 'out of memory' \
        -e 'memory limit' pan.out
}

# Most searches are short: compiling the checker takes longest, for which tcc needs a hundredth of gcc's time, and then the
# memory for a deep search. A search that does not come to its end so is done again. An error that is found counts at once.
shallow=(tcc -O0 3 -m20000 -w20)
deep=(gcc -O1 "${SPIN_TIMEOUT:-600}" -m1000000)
if [ -z "${SPIN_DEEP-}" ] && command -v tcc >/dev/null; then
    search_with "${shallow[@]}"
    came_to_its_end || grep -q 'errors: [1-9]' pan.out || search_with "${deep[@]}"
else
    search_with "${deep[@]}"
fi

errors=$(sed -n 's/.*errors: \([0-9]*\)$/\1/p' pan.out)
states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.out)
seconds=$(sed -n 's/^pan: elapsed time \(.*\) seconds$/\1/p' pan.out)
found=$(sed -n 's/^pan:[0-9]*: \(.*\)/\1/p' pan.out | head -1)

if [ "$mode" = --violated ]; then
    case $found in
    "assertion violated"* | "invalid end state"*)
        echo "$what: the search fails as it should: $found"
        exit 0
        ;;
    esac
    tail -30 pan.out
    fail "nothing was found wrong, although something is left out"
fi

if [ "${errors:-none}" != 0 ] && [ -n "$found" ] && [ -f "$model.pml.trail" ]; then
    spin "$@" -t -p -g "$model.pml" | tail -80
    fail "$found (the steps to it are above)"
fi
if ! came_to_its_end || [ "${errors:-none}" != 0 ] || [ -z "$states" ]; then
    tail -30 pan.out
    fail "the search did not come to its end (status $status)"
fi
if [ "$mode" = --safe ]; then
    unreached=$(sed -n "s/^.*$model\.pml:\([0-9]*\), state .*/\1/p" pan.out | sort -nu | while read -r line; do
        sed -n "${line}{/unreached: fine/!p}" "$model.pml" | sed "s/^ */$line: /"
    done)
    if [ -n "$unreached" ]; then
        echo "$unreached"
        fail "these lines were never reached"
    fi
fi
case $mode in
--safe | --part) echo "$what: no error in $states states, ${seconds:-?} s" ;;
--cycles) echo "$what: no cycle in $states states, ${seconds:-?} s" ;;
esac
