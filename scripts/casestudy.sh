#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# make casestudy: the experiments of docs/studies/casestudy.md, one after the other, for what it shows: the results as JSON and
# the figures, in build/casestudy. Twelve minutes at full size. What this machine lacks (Go, matplotlib) is left out.
# Usage: scripts/casestudy.sh [BUILD_FOLDER, build/release unless told] [options for each, --full unless told]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${1:-build/release}
shift $(($# > 0))
(($#)) || set -- --full
results=build/casestudy
mkdir -p "$results"

for experiment in sleep_threads sleep_ults sleep_ways compute file_io mixed requests; do
    if [[ ! -x $folder/bench/$experiment ]]; then
        echo "casestudy: there is no $folder/bench/$experiment; build it first: make casestudy" >&2
        exit 1
    fi
    echo "$experiment: $results/$experiment.json" >&2
    "$folder/bench/$experiment" "$@" --json >"$results/$experiment.json"
    bench/plot.py "$results/$experiment.json" "$results/$experiment" || true # says what is missing
done
