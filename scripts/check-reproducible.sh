#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the release twice, from two copies of the checkout in two folders of different length, and
# compares what would be installed, byte for byte. Part of make test-all.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

one=$scratch/one two=$scratch/a/longer/way/to/two
for copy in "$one" "$two"; do
    mkdir -p "$copy"
    tar -c --exclude=./build --exclude=./.git . | tar -x -C "$copy"
    (
        cd "$copy"
        cmake --preset release -DTHRUM_BUILD_TESTS=OFF -DTHRUM_BUILD_BENCH=OFF
        cmake --build --preset release
        DESTDIR=$copy/dest cmake --install build/release --prefix /usr
    ) >"$scratch/log" 2>&1 || { tail -n 50 "$scratch/log"; exit 1; }
    (cd "$copy/dest" && find . -type f -print0 | sort -z | xargs -0 sha256sum) >"$copy.sums"
done

if ! diff "$one.sums" "$two.sums"; then
    echo "the two builds differ" >&2
    exit 1
fi
[[ -s $one.sums ]]
grep -E 'libthrum|bin/' "$one.sums"
echo "$(wc -l <"$one.sums") installed files, the same from both folders"
