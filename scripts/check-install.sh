#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A ctest: installs a build into a scratch DESTDIR and uses what is there as a stranger would: the
# command (which has to find its library from the new place), pkg-config and find_package.
# Usage: check-install.sh CMAKE BUILD_FOLDER
set -euo pipefail
cmake=$1 build=$2

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "check-install: $*" >&2; exit 1; }

DESTDIR=$scratch/dest "$cmake" --install "$build" --prefix /opt/thrum >"$scratch/log" ||
    { cat "$scratch/log"; fail "cmake --install failed"; }
prefix=$scratch/dest/opt/thrum
[[ -z $(find "$scratch/dest" -type f -not -path "$prefix/*") ]] || fail "files outside the prefix"

library=$(cd "$prefix" && find "$PWD" -name libthrum-cache.so ! -path "$PWD/*/thrum/*") # there are those of other platforms below
[[ -f $library ]] || fail "libthrum-cache.so not installed"
[[ -f ${library%/*}/libthrum-stat.so ]] || fail "libthrum-stat.so not installed"
[[ -f $prefix/include/thrum/cache.h ]] || fail "include/thrum/cache.h not installed"
[[ -x $prefix/bin/thrum ]] || fail "bin/thrum not installed"

# The command is installed without debugging information, and needs what reads that of programs, and the compiler's own.
size=$(stat -c %s "$prefix/bin/thrum")
((size < 8000000)) || fail "bin/thrum has $size bytes, as if with debugging information"
needed=$(readelf -dW "$prefix/bin/thrum" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p')
grep -qx 'libc\.so\.6' <<<"$needed" || fail "bin/thrum does not even need libc.so.6"
! grep -vxE '(libc|libm|libpthread|libdw|libelf|libcapstone|libstdc\+\+|libgcc_s|ld-linux-[a-z0-9-]+)\.so\.[0-9]+' <<<"$needed" ||
    fail "bin/thrum needs more than is expected"

# The installed files may not name the folder they were built in.
build_real=$(realpath "$build")
for file in "$library" "$prefix/bin/thrum"; do
    ! grep -qaF "$build_real" "$file" || fail "$file contains the build folder's path"
done

# The command preloads the library of its own prefix, and none but that.
preloaded=$(env -u LD_PRELOAD "$prefix/bin/thrum" run -- /usr/bin/env | sed -n 's/^LD_PRELOAD=//p')
preloaded=${preloaded//\$PLATFORM/$(uname -m)} # as the loader does
[[ $(realpath "${preloaded%%[: ]*}") == "$(realpath "$library")" ]] ||
    fail "the installed command preloads '$preloaded', expected $library"

if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_PATH=${library%/*}/pkgconfig
    found=$(pkg-config --variable=preload thrum-cache)
    [[ $(realpath "$found") == "$(realpath "$library")" ]] || fail "pkg-config gives $found"
    pkg-config --cflags thrum-cache >/dev/null
fi

mkdir "$scratch/user"
cat >"$scratch/user/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.23)
project(user C)
find_package(thrum 0.1 REQUIRED)
add_executable(user user.c)
target_link_libraries(user PRIVATE thrum::headers)
get_target_property(location thrum::cache IMPORTED_LOCATION)
file(WRITE "${CMAKE_BINARY_DIR}/location" "${location}")
END
printf '#include <thrum/cache.h>\nint main(void) { return 0; }\n' >"$scratch/user/user.c"
{
    "$cmake" -G Ninja -S "$scratch/user" -B "$scratch/user/build" -DCMAKE_PREFIX_PATH="$prefix" &&
        "$cmake" --build "$scratch/user/build"
} >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "a project with find_package(thrum) does not build"; }
[[ $(realpath "$(<"$scratch/user/build/location")") == "$(realpath "$library")" ]] ||
    fail "thrum::cache is at $(<"$scratch/user/build/location")"

echo "installed, and used from there: command, library, headers, pkg-config, find_package"
