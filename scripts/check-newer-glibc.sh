#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What is built here has to be sound on a newer C library as well: the tests of the rows, built on this
# machine, run in a Debian 13. Part of make test-all, which has built the debug preset before.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/chroot.sh

chroot_possible
[[ -e build/debug/lib/libthrum-cache.so ]] || { echo "build the debug preset first" >&2; exit 1; }

packages="cmake libstdc++6 procps binutils python3 gdb musl libdw1t64" # what the tests call; no compiler
if [[ ! -e $chroots/trixie.packages || $(<"$chroots/trixie.packages") != "$packages" ]]; then
    chroot_fresh trixie trixie
    # shellcheck disable=SC2016 # expanded in the chroot
    chroot_run trixie trixie bash -euc '
        export DEBIAN_FRONTEND=noninteractive
        apt-get -qq update
        apt-get -qq install -y --no-install-recommends $1
    ' install "$packages" >"$chroots/trixie.log" 2>&1 || { tail -n 20 "$chroots/trixie.log"; exit 1; }
    echo "$packages" >"$chroots/trixie.packages"
fi
# shellcheck disable=SC2016 # expanded in the chroot
CHROOT_BIND=$PWD chroot_run trixie trixie bash -euc '
    ldd --version | head -n 1
    ctest --test-dir "$1/build/debug" --output-on-failure --no-tests=error -j "$(nproc)" -L rows -LE heavy
' check "$PWD"
