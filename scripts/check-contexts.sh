#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A step of make lint: clang's thread-safety analysis reads the sources of libthrum and of libabt. What is INSIDE
# (src/base/inside.h) is called only between enter() and leave(), and each function leaves what it has entered. Assertions
# are in it. Needs clang, else it ends with 77.
# Usage: check-contexts.sh SOURCE_FOLDER [FILE...], the files being below src or abt; all of them unless told
set -euo pipefail
cd "$1"
shift
command -v clang >/dev/null || { echo "clang: not installed, left out"; exit 77; }

files=("$@")
(($#)) || mapfile -t files < <(find src abt -name '*.c' | sort)
case $(uname -m) in
    aarch64) cpu=aarch64 ;;
    *) cpu=x86_64 ;;
esac
flags=(-fsyntax-only -std=gnu17 -D_GNU_SOURCE -DTHRUM_DEBUG=1 -Iinclude -Isrc "-Isrc/arch/$cpu" -Iabt -Iabt/include
    -Wno-everything -Wthread-safety -Werror=thread-safety '-DTHRUM_VERSION="lint"')
echo "contexts: ${#files[@]} files"
printf '%s\0' "${files[@]}" | xargs -0 -n 8 -P "$(nproc)" clang "${flags[@]}"
