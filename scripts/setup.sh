#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages that ./test, ./run or make test-all need, if any is missing; where all
# are there it touches nothing and needs no network. Called by those scripts.
# Usage: scripts/setup.sh build|test|run|all
#
# package=program in a list: not missing where that program is on the PATH, however it came there.
set -euo pipefail

usage="usage: scripts/setup.sh build|test|run|all"
(($# == 1)) || { echo "$usage" >&2; exit 2; }

build=(gcc g++ make cmake ninja-build pkg-config libcli11-dev nlohmann-json3-dev libdw-dev libcapstone-dev)
test=("${build[@]}" libgtest-dev spin tcc stress-ng pigz xz-utils zstd gdb libc6-dbg python3
    libpython3.11-testsuite procps man-db eatmydata libjemalloc2 libmimalloc2.0 libcap-dev musl-tools valgrind
    7zip sysbench libopenblas-dev libgc-dev linux-perf=perf
    gnat=gnatmake mono-mcs=mcs mono-runtime=mono haproxy curl)
run=("${build[@]}" stress-ng python3 wrk)
all=("${test[@]}" wrk git clang libclang-rt-dev clang-format clang-tidy shellcheck debootstrap
    qemu-user gcc-aarch64-linux-gnu g++-aarch64-linux-gnu
    libboost-fiber-dev libtbb-dev cargo=cargo
    mariadb-server=mariadbd openssh-server=sshd chromium ruby
    default-jdk-headless=javac golang-go=go python3-torch python3-matplotlib python3-venv)
case $1 in
    build) wanted=("${build[@]}") ;;
    test) wanted=("${test[@]}") ;;
    run) wanted=("${run[@]}") ;;
    all) wanted=("${all[@]}") ;;
    *) echo "$usage" >&2; exit 2 ;;
esac

installed() {
    [[ $1 != *=* ]] || ! command -v "${1#*=}" >/dev/null || return 0
    dpkg-query -W -f='${db:Status-Status}\n' "${1%%=*}" 2>/dev/null | grep -qx installed
}

if ! command -v dpkg-query >/dev/null; then
    echo "thrum: not a Debian system; install the equivalents of: ${wanted[*]%%=*}" >&2
    for program in cc c++ cmake ninja; do
        command -v "$program" >/dev/null || exit 1
    done
    exit 0
fi

missing=()
for package in "${wanted[@]}"; do
    installed "$package" || missing+=("${package%%=*}")
done
((${#missing[@]})) || exit 0

line="apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
as_root=()
if ((EUID != 0)); then
    as_root=(sudo)
    line="sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}"
    if ! command -v sudo >/dev/null; then
        echo "thrum: packages are missing and there is no sudo; as root, type: ${line//sudo /}" >&2
        exit 1
    fi
    if [[ ! -t 0 ]] && ! sudo -n true 2>/dev/null; then
        echo "thrum: packages are missing and sudo wants a password; type: $line" >&2
        exit 1
    fi
fi

echo "Installing ${#missing[@]} packages: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@"; }
if ! { apt update && apt install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "thrum: the packages could not be installed; type: $line" >&2
    exit 1
fi
