#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the tokio peer in a folder of its own, with the newest tokio that the compiler here takes, from crates.io or
# from what cargo has of it. Without either it says so in one line and is content: the peer is left out then.
# Usage: build-tokio.sh SOURCE BUILD_FOLDER PROGRAM
set -euo pipefail
source=$1 folder=$2 program=$3

mkdir -p "$folder"
cp -r "$source/Cargo.toml" "$source/src" "$folder/"
cd "$folder"
try() { CARGO_TARGET_DIR=$folder/target cargo build --release --quiet "$@" >log 2>&1; }
# 1.38 is the last that Debian 12's compiler takes.
if try || try --offline || { cargo update --quiet -p tokio --precise 1.38.1 >log 2>&1 && try; }; then
    cp target/release/tokio-peer "$program"
else
    echo "the tokio peer is left out: $(grep -m 1 error log || tail -n 1 log)"
fi
