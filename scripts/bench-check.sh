#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# make bench-check: the benchmarks that have targets to reach, all of them even if one misses its own. Fails if a target
# is missed; what a busy machine leaves undecided is said, and does not count. THRUM_BENCH_ARGOBOTS_PATH: bench/abt/abt.c.
# Usage: scripts/bench-check.sh [BUILD_FOLDER, build/release unless told] [options for each benchmark]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${1:-build/release}
shift $(($# > 0))

benchmarks=(create_join spawn stdasync never_slower stat_overhead memory)
if [[ -x $folder/bench/ult ]]; then # where there is no libthrum there is none of these
    benchmarks+=(preempt_cost preempt_overhead own_tls fairness sleep "ult --armed --floor --rounds 21")
fi
if [[ -x $folder/bench/programs/abt && -n ${THRUM_BENCH_ARGOBOTS_PATH:-} ]]; then # its targets are ratios to that library
    benchmarks+=(programs/abt)
fi

worst=0
for benchmark in "${benchmarks[@]}"; do
    printf '\n== %s\n' "$benchmark"
    read -ra words <<<"$benchmark"
    [[ $benchmark == programs/abt ]] || words+=("$@") # which has no options
    status=0
    "$folder/bench/${words[0]}" "${words[@]:1}" --check || status=$?
    ((status == 0 || status == 3)) || exit "$status"
    ((status == 0)) || worst=$status
done

printf '\n== test_times\n'
status=0
bench/test_times.py --check || status=$?
((status == 0 || status == 3)) || exit "$status"
exit $((worst > status ? worst : status))
