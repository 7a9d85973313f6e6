#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A ctest: each function of abt.h is in the library, without a version, and each of the library's in abt.h; the SONAME and the
# data are those that programs of Argobots were linked with; the header is read by C and C++ without a warning; each function
# has a row in every.inc, and is called in a test besides.
# Usage: check-interface.sh HEADER LIBRARY READELF CC CXX
set -euo pipefail
header=$1 library=$2 readelf=$3 cc=$4 cxx=$5
fail() { echo "$*" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

grep -oE '\bABT_[a-z_]+\(' "$header" | tr -d '(' | sort -u > "$scratch/declared"
LC_ALL=C "$readelf" --dyn-syms -W "$library" |
    awk '$4 == "FUNC" && $7 != "UND" && $8 ~ /^ABT_/ { print $8 }' | sort -u > "$scratch/defined"
diff "$scratch/declared" "$scratch/defined" || fail "abt.h (<) and the library (>) differ"
count=$(wc -l < "$scratch/declared")
((count == 261)) || fail "$count functions in abt.h, and not 261"
! grep -q '@' "$scratch/defined" || fail "functions of Argobots have no symbol versions"

here=$(dirname "$0")
grep -oE '\b(ABT|thrum_abt)_[a-z_]+\(' "$header" | tr -d '(' | sort -u > "$scratch/all"
grep -oE '\((ABT|thrum_abt)_[a-z_]+[,)]' "$here/every.inc" | tr -d '(),' | sort > "$scratch/rows"
diff "$scratch/all" "$scratch/rows" || fail "abt.h (<) and every.inc (>) differ"
cat "$here"/*_test.cpp "$here"/streams.hpp | grep -oE '\b(ABT|thrum_abt)_[a-z_]+\b' | sort -u > "$scratch/tested"
untested=$(comm -23 "$scratch/all" "$scratch/tested")
[[ -z $untested ]] || fail "no test calls ${untested//$'\n'/ }"

LC_ALL=C "$readelf" -d -W "$library" | grep -q 'SONAME.*\[libabt\.so\.1\]' || fail "the SONAME is not libabt.so.1"
for object in ABT_sched_config_var_end ABT_sched_config_access ABT_sched_config_automatic ABT_sched_basic_freq \
    ABT_pool_config_automatic; do
    LC_ALL=C "$readelf" --dyn-syms -W "$library" |
        awk -v name="$object" '$8 == name && $4 == "OBJECT" && $3 == 8 { found = 1 } END { exit !found }' ||
        fail "$object is not an object of 8 bytes"
done

echo '#include <abt.h>' > "$scratch/header.c"
cp "$scratch/header.c" "$scratch/header.cpp"
"$cc" -std=c99 -Wall -Wextra -Wpedantic -Werror -D_POSIX_C_SOURCE=200809L -I"${header%/*}" -fsyntax-only "$scratch/header.c"
"$cxx" -std=c++11 -Wall -Wextra -Werror -I"${header%/*}" -fsyntax-only "$scratch/header.cpp"
echo "$count functions"
