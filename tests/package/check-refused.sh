#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A ctest: each mistake in refused.cpp is one error of the compiler's, whose line says what the mistake's says behind REFUSED.
# Usage: check-refused.sh INCLUDE_FOLDER CXX
set -u
source=$(dirname "${BASH_SOURCE[0]}")/refused.cpp
messages=$(LC_ALL=C "$2" -std=c++20 -I "$1" -fsyntax-only "$source" 2>&1)
errors=$(grep -E '(^|: )error: ' <<<"$messages")
failed=0
while read -r count text; do
    said=$(grep -cF -- "$text" <<<"$errors")
    [[ $said == "$count" ]] || { echo "said $said times, not $count: $text"; failed=1; }
done < <(sed -n 's/.*REFUSED: //p' "$source" | sort | uniq -c)
mistakes=$(grep -c 'REFUSED: ' "$source") lines=$(grep -c . <<<"$errors")
[[ $lines == "$mistakes" ]] || { echo "$mistakes mistakes, and $lines errors"; failed=1; }
((failed == 0)) || echo "$messages"
echo "$mistakes mistakes"
exit $failed
