#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# make applications, make cholesky, make insitu, make tail: the benchmarks of docs/studies/cholesky.md, docs/studies/insitu.md and
# docs/studies/tail-latency.md, one after the other; the results as JSON, the documents' tables as Markdown and the figures, in
# build/applications. Twenty-five minutes for all at the usual size. What this machine lacks (LAMMPS, Go, a BLAS,
# matplotlib) is left out. Usage: scripts/applications.sh BUILD_FOLDER [cholesky] [insitu] [tail] [-- options for each]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${1:-build/release}
shift $(($# > 0))
applications=()
while (($#)) && [[ $1 != -- ]]; do
    applications+=("$1")
    shift
done
shift $(($# > 0))
options=("$@")
((${#applications[@]})) || applications=(cholesky insitu tail)
results=build/applications
mkdir -p "$results"

measure() { # NAME BENCHMARK [OPTIONS]
    local name=$1 benchmark=$folder/bench/$2
    shift 2
    if [[ ! -x $benchmark ]]; then
        echo "applications: there is no $benchmark, $name is left out; cmake says what it needs" >&2
        return
    fi
    echo "$name: $results/$name.json, $name.md" >&2
    "$benchmark" "$@" "${options[@]}" --json >"$results/$name.json"
    bench/tables.py "$results/$name.json" >"$results/$name.md"
    bench/plot.py "$results/$name.json" "$results/$name" || true # says what is missing
}

for application in "${applications[@]}"; do
    case $application in
    cholesky)
        measure cholesky cholesky
        measure cholesky-crowded cholesky --members 4 --least 2048 --rounds 4 --seconds 0
        ;;
    insitu)
        measure insitu-md insitu_md
        measure insitu-md-leaving-out insitu_md --leave-out --intervals 10,20 --rounds 3
        measure insitu-lammps insitu_lammps --intervals 10,20,50,100 --rounds 3
        ;;
    tail)
        measure tail-latency tail_latency
        ;;
    *)
        echo "applications: there is no $application: cholesky, insitu, tail" >&2
        exit 2
        ;;
    esac
done
