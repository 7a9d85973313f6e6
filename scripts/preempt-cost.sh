#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# make bench-preempt: what docs/internals/preemption-cost.md shows: the benchmarks of preemption one after the other, and bench/ult
# with preemption and without; the results as JSON and the figures, in build/preempt. A quarter of an hour at the usual
# size. Without matplotlib there are no figures.
# Usage: scripts/preempt-cost.sh [BUILD_FOLDER, build/release unless told] [options for each benchmark]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${1:-build/release}
shift $(($# > 0))
results=build/preempt
mkdir -p "$results"

measure() { # NAME BENCHMARK [OPTIONS]
    local name=$1 benchmark=$folder/bench/$2
    shift 2
    if [[ ! -x $benchmark ]]; then
        echo "preempt-cost: there is no $benchmark; build it first: make bench-preempt" >&2
        exit 1
    fi
    echo "$name: $results/$name.json" >&2
    "$benchmark" "$@" --json >"$results/$name.json"
    bench/plot.py "$results/$name.json" "$results/preempt-$name" || true # says what is missing
}

measure cost preempt_cost "$@"
measure forms preempt_forms "$@"
measure overhead preempt_overhead "$@"
measure timers preempt_timers "$@"
measure armed ult --armed "$@"
