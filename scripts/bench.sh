#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# make bench: every benchmark of a build, one after the other; each prints a table, or JSON with --json.
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
    "$benchmark" "$@"
done
