#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A ctest: libthrum as people get it, installed into a scratch DESTDIR. Programs in C and C++ are built against it by
# hand (the compiler and pkg-config) and by a CMake project (find_package), and run; a manual page is found under the
# name of every function that the library exports; a program that loads and unloads it survives.
# Usage: check-library.sh SOURCE_FOLDER BUILD_FOLDER CMAKE CC CXX
set -euo pipefail
source=$1 build=$2 cmake=$3 cc=$4 cxx=$5
user=$source/tests/package/user

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "check-library: $*" >&2; exit 1; }
overflows() {
    local status=0
    said=$(ulimit -c 0; "$1" 2>&1) || status=$?
    ((status == 139)) && [[ $said == *"thrum: stack overflow in thread"* && $said != *"went on"* ]] ||
        fail "$1: status $status, $said"
}
quietly() { "$@" >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "failed: $*"; }; }

DESTDIR=$scratch/dest quietly "$cmake" --install "$build" --prefix /opt/thrum
mv "$scratch/dest/opt/thrum" "$scratch/moved" # a prefix may be moved
prefix=$scratch/moved

library=$(find "$prefix" -name libthrum.so)
folder=${library%/*}
[[ -e $library && -e $folder/libthrum.so.0 ]] || fail "libthrum.so or libthrum.so.0 not installed"
! grep -qaF "$(realpath "$build")" "$library" || fail "$library contains the build folder's path"
export LD_LIBRARY_PATH=$folder

# --- by hand ---
if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH=$folder/pkgconfig
    version=$(pkg-config --modversion thrum)
    grep -q "^project(thrum VERSION $version " "$source/CMakeLists.txt" || fail "pkg-config: version $version"
    read -ra flags < <(pkg-config --cflags --libs thrum)
    strict=(-pedantic -Wall -Wextra -Werror)
    quietly "$cc" -std=c11 "${strict[@]}" "$user/user.c" -o "$scratch/c" "${flags[@]}"
    quietly "$scratch/c"
    quietly "$cxx" -std=c++11 "${strict[@]}" "$user/user.cpp" -o "$scratch/cpp" "${flags[@]}"
    quietly "$scratch/cpp"
    quietly "$cxx" -std=c++20 "${strict[@]}" "$user/user20.cpp" -o "$scratch/cpp20" "${flags[@]}"
    quietly "$scratch/cpp20"

    quietly "$cc" "${strict[@]}" "$user/deep.c" -o "$scratch/deep" "${flags[@]}"
    overflows "$scratch/deep"

    # What <thrum/thrum.h> says that one should try first.
    if command -v python3 >/dev/null; then
        python3 "$source/tests/package/check-snippets.py" --print "$prefix/include/thrum/thrum.h" >"$scratch/hello.c"
        quietly "$cc" "$scratch/hello.c" "${strict[@]}" -o "$scratch/hello" "${flags[@]}"
        [[ $("$scratch/hello") == "hello, world" ]] || fail "the example in thrum.h says $("$scratch/hello")"
    fi

    read -ra include < <(pkg-config --cflags-only-I thrum)
    quietly "$cc" "${strict[@]}" "$user/unload.c" -o "$scratch/unload" "${include[@]}" -ldl
    quietly "$scratch/unload" "$library"
fi

# --- by CMake ---
quietly "$cmake" -G Ninja -S "$user" -B "$scratch/project" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx"
quietly "$cmake" --build "$scratch/project"
for language in c cpp cpp20; do
    env -u LD_LIBRARY_PATH "$scratch/project/user-$language" || fail "user-$language: status $?"
done
overflows "$scratch/project/user-deep"

# --- manual pages ---
# Those that have none yet.
pages=0
while read -r name; do
    page=$prefix/share/man/man3/$name.3
    [[ -s $page ]] || fail "no manual page for $name()"
    target=$(sed -n 's/^\.so //p' "$page")
    [[ -z $target || -s $prefix/share/man/$target ]] || fail "$page: .so $target leads nowhere"
    grep -q "$name(" "$prefix/share/man/${target:-man3/$name.3}" || fail "$name() is not in the synopsis of its page"
    pages=$((pages + 1))
done < <(sed -n 's/^ *\(thrum_[a-z_]*\);$/\1/p' "$source/src/runtime/libthrum.map")
((pages > 100)) || fail "only $pages functions in the version script"

echo "installed and used from there: C and C++, pkg-config and find_package; $pages functions have manual pages"
