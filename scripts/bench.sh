#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# make bench: every benchmark of a build, one after the other; each prints a table, or JSON with --json. One
# that lacks something on this machine says so in a line and is left out (exit code 77).
# Where matplotlib is installed, spawn's figure is drawn as well, from a run of its own: BUILD_FOLDER/spawn.svg and .png.
# Usage: scripts/bench.sh [BUILD_FOLDER, build/release unless told] [options for each benchmark]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${1:-build/release}
shift $(($# > 0))

mapfile -t benchmarks < <(find "$folder/bench" -maxdepth 1 -type f -executable 2>/dev/null | sort)
if ((${#benchmarks[@]} == 0)); then
    echo "bench: no benchmark in $folder/bench" >&2
    exit 1
fi
for benchmark in "${benchmarks[@]}"; do
    [[ " $* " == *" --json "* ]] || printf '\n== %s\n' "${benchmark##*/}"
    status=0
    "$benchmark" "$@" || status=$?
    ((status == 0 || status == 77)) || exit "$status"
done

if [[ " $* " != *" --json "* ]] && /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
    "$folder/bench/spawn" "$@" --creators 1,2,4,8,16,32 --busy 0 --json >"$folder/spawn.json"
    bench/plot.py "$folder/spawn.json" "$folder/spawn"
    printf '\nthe figure of spawn: %s\n' "$folder/spawn.svg"
fi
