#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A parallel compressor, round-trip.sh pigz|xz|zstd: the compressed bytes equal those made without thrum, and
# unpacking them under thrum gives the data back. Called by ctest.
# shellcheck source=tests/programs/lib.sh
source "$(dirname "$0")/lib.sh"
case $1 in
  pigz) package=pigz suffix=gz pack=(pigz -n -p 4 -b 128 -k -c) unpack=(pigz -d -p 4 -c) ;;
  xz) package=xz-utils suffix=xz pack=(xz -1 -T4 --block-size=512KiB -k -c) unpack=(xz -d -T4 -c) ;;
  zstd) package=zstd suffix=zst pack=(zstd -q -3 -T4 -B1MB -k -c) unpack=(zstd -q -d -T4 -c) ;;
  *) echo "usage: round-trip.sh pigz|xz|zstd" >&2 && exit 2 ;;
esac
need "$1" "$package"
test_name="round-trip $1"

# 12 MB of text, 3 MB that cannot be compressed, and forty small files.
seq 1 1700000 >large
seq 1700000 -3 1 | xz -0 -c | head -c 3000000 >>large
for i in $(seq 40); do head -c $((i * 20000)) large | tail -c 300000 >"small-$i"; done
files=(large small-*)
cat "${files[@]}" >everything

run_plain "${pack[@]}" "${files[@]}"
run_thrum "${pack[@]}" "${files[@]}"
cmp plain.raw thrum.raw || fail "the compressed bytes differ"
expect_same
mv thrum.raw "packed.$suffix"
[[ $(stat -c %s "packed.$suffix") -lt $(stat -c %s everything) ]] || fail "nothing was compressed"

# pigz starts threads for every file, the others once.
if [[ $1 == pigz ]]; then expect_reused 30; else expect_reused 0; fi

run_plain "${unpack[@]}" "packed.$suffix"
run_thrum "${unpack[@]}" "packed.$suffix"
cmp thrum.raw everything || fail "unpacking does not give the data back"
expect_same
