# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Debian chroots for tests, kept under build/chroots. Sourced by check-fresh-debian.sh and
# check-newer-glibc.sh. The packages come from where apt of this machine is set to get them.

chroots=$PWD/build/chroots

# Ends with status 77 (cannot run here) where chroots cannot be made.
chroot_possible() {
    if ((EUID != 0)); then
        echo "skipped: making a chroot needs root"
        exit 77
    fi
    if ! unshare --mount --pid --fork mount -t tmpfs none /mnt 2>/dev/null; then
        echo "skipped: this machine does not allow mounts (a container without CAP_SYS_ADMIN?)"
        exit 77
    fi
    if ! command -v debootstrap >/dev/null; then
        echo "skipped: no debootstrap"
        exit 77
    fi
}

# The URL of the Debian archive that apt uses: the one whose release calls itself "Debian".
debian_mirror() {
    local mirror
    mirror=$(apt-cache policy | awk '
        $2 ~ /^https?:/ { url = $2; suite = $3 }
        $1 == "release" && /o=Debian,/ && /l=Debian(,|$)/ && suite ~ /^[a-z]+\/main$/ { found = url }
        END { print found }')
    if [[ -z $mirror ]]; then
        echo "apt-cache policy names no Debian archive; run apt-get update" >&2
        return 1
    fi
    echo "$mirror"
}

# chroot_base SUITE: a pristine minimal system as an archive, build/chroots/SUITE.tar, made once.
chroot_base() {
    local suite=$1 archive=$chroots/$1.tar tree=$chroots/$1.making proxy=
    [[ ! -s $archive ]] || return 0
    mkdir -p "$chroots"
    rm -rf "$tree"
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    echo "making a $suite system (once)"
    env ${proxy:+http_proxy="$proxy"} debootstrap --variant=minbase "$suite" "$tree" "$(debian_mirror)" \
        >"$chroots/$suite.log" 2>&1 || { tail -n 20 "$chroots/$suite.log"; return 1; }
    tar -C "$tree" -cf "$archive.part" .
    mv "$archive.part" "$archive"
    rm -rf "$tree"
}

# chroot_fresh SUITE NAME: build/chroots/NAME becomes a fresh copy of the pristine system.
chroot_fresh() {
    chroot_base "$1"
    rm -rf "${chroots:?}/$2"
    mkdir -p "$chroots/$2" "$chroots/archives-$1/partial"
    tar -C "$chroots/$2" -xf "$chroots/$1.tar"
}

# chroot_run SUITE NAME COMMAND...: runs it there with /proc, /sys, /dev and the network of this
# machine. The mounts are in a namespace of their own and end with it, as do stray processes. Downloaded
# packages are kept between runs; CHROOT_BIND=DIR shows a folder of this machine at the same place.
chroot_run() {
    local suite=$1 root=$chroots/$2
    shift 2
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare --mount --pid --fork --kill-child bash -euc '
        root=$1 archives=$2 bind=$3
        shift 3
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount --rbind /dev "$root/dev"
        mount --bind "$archives" "$root/var/cache/apt/archives"
        cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
        apt-config dump 2>/dev/null | grep -E "^Acquire::https?::Proxy " \
            >"$root/etc/apt/apt.conf.d/90proxy" || true
        if [ -n "$bind" ]; then
            mkdir -p "$root$bind"
            mount --bind "$bind" "$root$bind"
        fi
        exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 chroot "$root" "$@"
    ' chroot_run "$root" "$chroots/archives-$suite" "${CHROOT_BIND:-}" "$@"
}
