#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A ctest: each public header compiles by itself, with nothing defined or included before it, as strict C from C11 on
# and as C++ from C++11 on (*.hpp from C++20 on), without a warning; and those of C++ have no std::function.
# Usage: check-headers.sh INCLUDE_FOLDER CC CXX [--each], which is for the parts of thrum.hpp, each a second of CPU time
set -u
include=$1 cc=$2 cxx=$3 each=${4-}
warnings=(-pedantic -Wall -Wextra -Wshadow -Wundef -Werror -fsyntax-only)
checked=0 failed=0

# compile COMPILER LANGUAGE STANDARD HEADER [OPTION...]; the include stands there twice, for its guard.
compile() {
    local compiler=$1 language=$2 standard=$3 header=$4
    shift 4
    checked=$((checked + 1))
    printf '#include <%s>\n#include <%s>\nint checked;\n' "$header" "$header" |
        "$compiler" -x "$language" -std="$standard" "${warnings[@]}" "$@" -I . - ||
        { echo "$header: $language, $standard"; failed=1; }
}

cd "$include" || exit 1
if [[ $each == --each ]]; then
    for header in thrum/hpp/*.hpp; do
        compile "$cxx" c++ c++20 "$header" -Wconversion -Wsign-conversion -Wold-style-cast
    done
    for header in thrum/hpp/detail/*.hpp; do
        compile "$cxx" c++ c++20 "$header"
    done
    echo "$checked compilations"
    exit $failed
fi
for header in thrum/*.h; do
    for standard in c11 c17; do
        compile "$cc" c "$standard" "$header" -Wstrict-prototypes
    done
    for standard in c++11 c++17 c++20; do
        compile "$cxx" c++ "$standard" "$header" -Wold-style-cast -Wzero-as-null-pointer-constant
    done
done
for header in thrum/*.hpp; do
    [[ ! -e $header ]] || compile "$cxx" c++ c++20 "$header" -Wconversion -Wsign-conversion -Wold-style-cast
done
# Whatever is called is taken as the type that it is, and moved: a std::function would have to be copied, and allocates.
if grep -n 'std::function\b' thrum/*.hpp thrum/hpp/*.hpp thrum/hpp/detail/*.hpp; then
    failed=1
fi
echo "$checked compilations"
((checked > 0)) || exit 1
exit $failed
