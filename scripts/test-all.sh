#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# make test-all: ./test and everything that is too heavy for a first visit. Compiler warnings are
# errors. Ends, like ./test, with "N passed, N failed, N skipped"; the steps in docs/reference/building.md.
# Usage: scripts/test-all.sh [STEP...], the steps being those named below; all of them unless told.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export THRUM_WERROR=ON
source scripts/lib.sh

steps=(native heavy asan tsan clang aarch64 lint reproducible newer-glibc fresh-debian)

# If a build fails, its tests count as failed, and the other steps continue.
built() { build "$@" || { failed=$((failed + 1)); echo "build $1 FAILED" >&2; return 1; }; }

step_native() { # what ./test does
    for preset in release debug; do
        if built "$preset"; then run_tests "$preset" -LE heavy; fi
    done
}

step_heavy() {
    for preset in release debug; do
        if built "$preset"; then run_tests "$preset" -L heavy; fi
    done
}

# The instrumented part is what links the core; the preloaded library cannot be (docs/reference/building.md). No benchmark
# but alternatives has unit tests, which are built without the others.
step_asan() { if built asan -DTHRUM_BUILD_BENCH=OFF; then run_tests asan -L unit -LE heavy; fi; }

# TSan of Debian 12's compilers cannot place its shadow where the kernel randomises more than 28 bits.
step_tsan() {
    if built tsan -DTHRUM_BUILD_BENCH=OFF; then
        if (($(</proc/sys/vm/mmap_rnd_bits) > 28)); then
            launcher=(setarch --addr-no-randomize)
        fi
        run_tests tsan -L unit -LE heavy
        launcher=()
    fi
}

each_header='^package\.headers-each$' # heavy, and says something of each compiler

step_clang() {
    if built clang; then
        run_tests clang -LE heavy
        run_tests clang -R "$each_header"
    fi
}

step_aarch64() {
    if built aarch64 -DTHRUM_BUILD_BENCH=OFF; then
        run_tests aarch64 -L unit -LE heavy
        run_tests aarch64 -R "$each_header"
    fi
}

step_lint() { check "lint" scripts/lint.sh; }
step_reproducible() { check "reproducible build" scripts/check-reproducible.sh; }
step_newer-glibc() {
    if built debug; then check "rows on Debian 13" scripts/check-newer-glibc.sh; fi
}
step_fresh-debian() { check "fresh Debian 12" scripts/check-fresh-debian.sh; }

(($#)) || set -- "${steps[@]}"
for step in "$@"; do
    if [[ " ${steps[*]} " != *" $step "* ]]; then
        echo "test-all: no step '$step'; there are: ${steps[*]}" >&2
        exit 2
    fi
done
scripts/setup.sh all
for step in "$@"; do
    "step_$step"
done
summary
