#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What is built here has to be sound on a newer C library as well: the tests of the rows, the unit tests of libthrum and of
# what it shares with the cache, and those of unmodified programs, built on this machine, run in a Debian 13. Part of make
# test-all, which has built the debug preset before.
# Usage: scripts/check-newer-glibc.sh [ctest options that choose tests, as -R or -L]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/chroot.sh

chroot_possible
[[ -e build/debug/lib/libthrum-cache.so ]] || { echo "build the debug preset first" >&2; exit 1; }

# What the tests call; compilers for those that compile a program of their own.
packages="cmake libstdc++6 procps binutils python3 gdb libc6-dbg musl libdw1t64 libhwloc15 libgc1 libgomp1 libcap2 gcc libc6-dev util-linux
    libjemalloc2 stress-ng pigz xz-utils zstd eatmydata gnat mono-mcs mono-runtime haproxy curl
    chromium chromium-sandbox openssh-server mariadb-server mariadb-client"
# Debian 13 has a later one; thrum, built here, needs that of this machine.
from_here=(/usr/lib/*/libcapstone.so.4)

if [[ ! -e $chroots/trixie.packages || $(<"$chroots/trixie.packages") != "$packages" ]]; then
    chroot_fresh trixie trixie
    # shellcheck disable=SC2016 # expanded in the chroot
    chroot_run trixie trixie bash -euc '
        export DEBIAN_FRONTEND=noninteractive
        printf "#!/bin/sh\nexit 101\n" >/usr/sbin/policy-rc.d # no package starts its server
        chmod +x /usr/sbin/policy-rc.d
        apt-get -qq update
        apt-get -qq install -y --no-install-recommends $1
    ' install "$packages" >"$chroots/trixie.log" 2>&1 || { tail -n 20 "$chroots/trixie.log"; exit 1; }
    echo "$packages" >"$chroots/trixie.packages"
fi
cp -L "${from_here[@]}" "$chroots/trixie/usr/local/lib/"

(($#)) || set -- -LE heavy -R '^(row|ult|base|programs)\.'
# shellcheck disable=SC2016 # expanded in the chroot
CHROOT_BIND=$PWD chroot_run trixie trixie bash -euc '
    ldconfig
    ldd --version | head -n 1
    folder=$1 status=0
    shift
    tests() { ctest --test-dir "$folder/build/debug" --output-on-failure --no-tests=error -j "$(nproc)" "$@" || status=1; }
    tests "$@"
    tests -R "^programs\.(chromium|sshd|mariadb)\$" # heavy, and what a new libc may break
    exit $status
' check "$PWD" "$@"
