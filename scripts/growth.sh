#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# make growth: what docs/studies/growth.md shows: how cost grows as measured, the simulation that is made of it, and the figures;
# the results as JSON and the figures in build/growth. Ten minutes or so. Without matplotlib there are no figures.
# Usage: scripts/growth.sh [BUILD_FOLDER, build/release unless told] [options for bench/growth, --full --peers unless told]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${1:-build/release}
shift $(($# > 0))
(($#)) || set -- --full --peers
results=build/growth
mkdir -p "$results"

if [[ ! -x $folder/bench/growth ]]; then
    echo "growth: there is no $folder/bench/growth; build it first: make growth" >&2
    exit 1
fi
echo "measured: $results/growth.json" >&2
"$folder/bench/growth" "$@" --json >"$results/growth.json"
sed 's|"path": "[^"]*/|"path": "|' "$results/growth.json" >"$results/example.json" # of no machine in particular
bench/plot.py "$results/growth.json" "$results/growth" || true # says what is missing
echo "simulated: $results/simulation.json" >&2
bench/growth/simulation.py --table "$results/growth.json"
bench/growth/simulation.py "$results/growth.json" >"$results/simulation.json"
bench/plot.py "$results/simulation.json" "$results/growth" || true
