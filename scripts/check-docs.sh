#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A ctest, and a step of lint.sh: the words of the documents, and what they point at.
#
# - Words: a thread is "it", an actor has the name of its role, and threads run, resume and wait (CONTRIBUTING.md, "Words").
#   Dialect is an error in the places listed below as clean, and counted with --count.
# - Links between the documents lead to a file, and a path in backticks names one.
#
#   check-docs.sh [SOURCE_FOLDER]          the test
#   check-docs.sh --count FILE...          the number of lines with dialect in each file that has some; never fails
# shellcheck disable=SC2016 # backticks in patterns
set -euo pipefail

# A place moves from one line to the next when it is clean: files and folders, whole or only the string literals in them.
clean_text=(README.md CONTRIBUTING.md CHANGELOG.md docs tests/model/README.md include src cache cli stat examples)
clean_strings=()

dialect='who|whoever|whom|nobody|somebody|he|his|go(es)? on|comes on|is to be had'
# Phrases in which such a word is right: a person, a program's name.
allowed=('who(1)' '.BR who (1)')

# of_dialect FILE...: FILE:LINE:TEXT of lines with a word of the dialect that no allowed phrase explains.
of_dialect() {
    local phrase
    local -a without=()
    for phrase in "${allowed[@]}"; do
        phrase=$(sed 's/[][\.*^$/]/\\&/g' <<<"$phrase")
        without+=(-e "s/$phrase//g")
    done
    for file; do
        sed "${without[@]}" "$file" | grep -niEw -- "$dialect" | sed "s|^|$file:|" || true
    done
}

# strings_of FILE: its string literals, each on the line that it has there; comments are left out.
strings_of() {
    sed -e 's|^ *//.*||; s|^ */\*.*||; s|^ *\*.*||; s| // .*||' "$1" |
        grep -noE '"([^"\\]|\\.)*"' || true
}

if [[ ${1:-} == --count ]]; then
    shift
    (($#)) || exit 0
    { grep -liwE -- "$dialect" "$@" || true; } | while read -r file; do
        number=$(of_dialect "$file" | wc -l)
        ((number == 0)) || echo "$number $file"
    done | sort -rn
    exit
fi

cd "${1:-.}"
failed=0

# Whether it would find anything: two lines of dialect of four.
[[ $(of_dialect <(printf '%s\n' "Who waits goes on." "A waiter resumes." "nobody has it" "see who(1)") | wc -l) == 2 ]] || {
    echo "check-docs.sh: it does not find the dialect" >&2
    failed=1
}

mapfile -t files < <(find "${clean_text[@]}" -type f ! -name "*.svg" | sort | xargs grep -liwE -- "$dialect" || true)
found=$(of_dialect "${files[@]}")
if ((${#clean_strings[@]})); then
    mapfile -t files < <(find "${clean_strings[@]}" -name '*.[ch]' -o -name '*.[ch]pp' | sort |
        xargs grep -liE "\"[^\"]*\<($dialect)\>" || true) # those that are worth a closer look
    for file in "${files[@]}"; do
        found+=$(strings_of "$file" | grep -iE ":.*\<($dialect)\>" | sed "s|^|\n$file:|" || true)
    done
fi
if [[ -n ${found//$'\n'/} ]]; then
    printf '%s\n' "$found" | grep .
    echo "check-docs.sh: name the actor by its role, and the action by the field's verb (CONTRIBUTING.md, \"Words\")" >&2
    failed=1
fi

mapfile -t documents < <(find README.md CONTRIBUTING.md CHANGELOG.md docs -name '*.md' | sort)
count=0
for document in "${documents[@]}"; do
    folder=$(dirname "$document")
    while read -r target; do
        count=$((count + 1))
        [[ -e $folder/$target ]] || { echo "$document: the link to $target leads nowhere" >&2; failed=1; }
    done < <(grep -oE '\]\([^)# ]+' "$document" | cut -c3- | grep -vE '^https?:|^(int|double|const|std::|thrum::)' || true)
    [[ $document != CHANGELOG.md ]] || continue # its files are those of the time
    while read -r target; do
        count=$((count + 1))
        [[ -e $target ]] || { echo "$document: there is no $target" >&2; failed=1; }
    done < <(grep -oE '`(include|src|cache|stat|cli|tests|examples|scripts|cmake|docs)/[A-Za-z0-9_./-]+`' "$document" |
        tr -d '`' || true) # bench/NAME is a program
done
((count > 0)) || { echo "check-docs.sh: no link in any document" >&2; failed=1; }
exit $failed
