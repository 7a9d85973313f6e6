#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# One libthrum serves instrumented programs: built with AddressSanitizer, and with ThreadSanitizer, a program (instrumented.c)
# on the library as it is installed has nothing reported that is not there, and what is there is.
# Usage: check-instrumented.sh SOURCES FOLDER-OF-LIBTHRUM COMPILER
#
# Exits with 77 where the compiler has neither.
set -euo pipefail

if [ $# -ne 3 ]; then
    echo "usage: check-instrumented.sh SOURCES FOLDER-OF-LIBTHRUM COMPILER" >&2
    exit 2
fi
sources=$1 library=$2 compiler=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tried=0 failed=0

# A loaded library that wants a sanitizer, or a preloaded one, would make this another test.
unset LD_PRELOAD ASAN_OPTIONS TSAN_OPTIONS

# has SANITIZER: programs can be built with it, and run.
has() {
    echo 'int main(void) { return 0; }' >"$folder/empty.c"
    "$compiler" -fsanitize="$1" "$folder/empty.c" -o "$folder/empty" 2>/dev/null && "$folder/empty" 2>/dev/null
}

# run NAME ARGUMENT: what it says is in FOLDER/said.
run() {
    timeout -k 5 60 "$folder/$1" "$2" >"$folder/said" 2>&1
}

complain() {
    echo "check-instrumented.sh: $1"
    head -40 "$folder/said"
    failed=1
}

# check SANITIZER BUG WORDS: silent where it is right, and says these words of the bug.
check() {
    if ! has "$1"; then
        echo "check-instrumented.sh: $compiler has no -fsanitize=$1 here"
        return
    fi
    tried=$((tried + 1))
    "$compiler" -O1 -g -fsanitize="$1" -fno-omit-frame-pointer -I"$sources/include" \
        "$sources/tests/package/instrumented.c" -o "$folder/$1" -L"$library" -lthrum -Wl,-rpath,"$library"
    if ! run "$1" right || [ -s "$folder/said" ]; then
        complain "with -fsanitize=$1 what is right fails, or is reported:"
    fi
    if run "$1" "$2" || ! grep -q "$3" "$folder/said"; then
        complain "with -fsanitize=$1 there is no '$3' reported:"
    fi
}

check address freed heap-use-after-free
check thread races "data race"
[ "$tried" -gt 0 ] || exit 77
exit $failed
