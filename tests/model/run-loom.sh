#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the loom models of a folder. The crates come from cargo's cache, or else from the network, once: they stay in
# FOLDER-OF-BUILD. Debian 12's cargo is the oldest that will do.
# Usage: run-loom.sh FOLDER FOLDER-OF-BUILD [argument of cargo test...]
#
# Exit status as cargo's, or 77 without cargo or the crates.
set -u

if [ $# -lt 2 ]; then
    echo "usage: run-loom.sh FOLDER FOLDER-OF-BUILD [argument of cargo test...]" >&2
    exit 1
fi
build=$2
cd "$1" || exit 1
shift 2

if ! command -v cargo >/dev/null; then
    echo "run-loom.sh: skipped: cargo is not installed"
    exit 77
fi

# Before 1.70 cargo asks for a copy of the whole index, unless it is told to use what was still a trial.
vendor() {
    RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_SPARSE_REGISTRY=true \
        timeout 120 cargo vendor --locked "$@" "$build/new" >/dev/null 2>&1
}

mkdir -p "$build" || exit 1
if [ ! -d "$build/crates" ]; then
    rm -rf "$build/new"
    vendor --offline || vendor || {
        echo "run-loom.sh: skipped: the crates of $PWD/Cargo.lock cannot be had"
        exit 77
    }
    mv "$build/new" "$build/crates" || exit 1
fi

exec cargo test --offline --locked --target-dir "$build/target" \
    --config 'source.crates-io.replace-with="here"' --config "source.here.directory=\"$build/crates\"" "$@"
