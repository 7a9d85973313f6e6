#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Two processes with idle threads in one control group that is made short of memory: both have the group's pressure file
# open, as a trigger where the kernel grants one, and both give their idle threads back.
#
#   pressure-group.sh POLICY LIBRARY
#
# Others are in need of the memory, so that nobody runs out of it: readers of a file that is larger than what they may
# have. Where the memory controller is of version 1 they are in a group of that; pressure is told by that of version 2
# in any case, which is mounted here, for this script alone, where the system has not done it.
# Exit status 0, 1, or 77 where this needs more rights than the caller has.
set -u

skip() {
    echo "pressure-group.sh: skipped: $1"
    exit 77
}
fail() {
    echo "pressure-group.sh: $1"
    exit 1
}

[ "$(id -u)" = 0 ] || skip "control groups are for root to make"
if [ -z "${PRESSURE_GROUP_PRIVATE-}" ]; then
    unshare -m true 2>/dev/null || skip "mounts of one's own are not allowed here"
    PRESSURE_GROUP_PRIVATE=1 exec unshare -m bash "$0" "$@"
fi
policy=$1
library=$2

work=$(mktemp -d) || exit 1
group=
limited=
clean() {
    [ -z "$group" ] || echo 1 >"$group/cgroup.kill" # and whoever they have started
    wait 2>/dev/null
    for folder in "$limited" "$group"; do
        [ -d "$folder" ] || continue
        for _ in {1..100}; do # until the last of them is gone
            rmdir "$folder" 2>/dev/null && break
            sleep 0.05
        done
    done
    umount "$work/memory" 2>/dev/null
    rm -rf "$work"
}
trap clean EXIT

# --- the groups ------------------------------------------------------------------------------------------------------

limit=$((16 << 20))
name=thrum-pressure-$$
top=/sys/fs/cgroup
if [ ! -e $top/cgroup.controllers ]; then
    if [ -d $top/memory ]; then
        mkdir "$work/memory"
        mount --bind $top/memory "$work/memory" || skip "no bind mount"
        limited=$work/memory/$name
    fi
    mount -t cgroup2 none $top 2>/dev/null || skip "control groups of version 2 cannot be mounted"
fi
[ -e $top/memory.pressure ] || [ -e /proc/pressure/memory ] || skip "the kernel tells no pressure"
group=$top/$name
mkdir "$group" 2>/dev/null || skip "$group cannot be made"
[ -r "$group/memory.pressure" ] || skip "the group has no memory.pressure"
if [ -n "$limited" ]; then
    mkdir "$limited" 2>/dev/null || skip "$limited cannot be made"
    echo $limit >"$limited/memory.limit_in_bytes" || skip "$limited cannot be limited"
else
    echo +memory >$top/cgroup.subtree_control 2>/dev/null
    echo $limit >"$group/memory.high" 2>/dev/null || skip "the group's memory cannot be limited"
fi

# Runs a command in the group, and where that is another one in the one with little memory.
in_group() {
    echo $BASHPID >"$group/cgroup.procs" || exit 1
    exec "$@"
}
in_limited() {
    [ -z "$limited" ] || echo $BASHPID >"$limited/cgroup.procs" || exit 1
    in_group "$@"
}

# --- those with idle threads -----------------------------------------------------------------------------------------

waiters=()
for one in first second; do
    mkfifo "$work/$one"
    in_group env LD_PRELOAD="$library" THRUM_CACHE_PRESSURE=1 THRUM_CACHE_MAX_AGE=0 "$policy" pressure-wait >"$work/$one" &
    waiters+=($!)
    read -r -N 1 -t 30 _ <"$work/$one" || true # ready, or it has ended
done
for pid in "${waiters[@]}"; do
    opened=$(readlink /proc/"$pid"/fd/* 2>/dev/null | grep -F "memory.pressure")
    [ "$opened" = "$group/memory.pressure" ] || fail "the process has open: '$opened', not the group's file"
done

sleep 3
for pid in "${waiters[@]}"; do
    kill -0 "$pid" 2>/dev/null || fail "idle threads were ended where memory was not short"
done

# --- the others ------------------------------------------------------------------------------------------------------

# Not in anybody's cache: what is, was paid for by this script.
dd if=/dev/zero of="$work/file" bs=1M count=$((4 * limit >> 20)) conv=fsync 2>/dev/null || fail "no room for a file"
dd if="$work/file" iflag=nocache count=0 2>/dev/null || fail "the file stays in memory"
for _ in 1 2 3 4; do
    # shellcheck disable=SC2016 # for the other shell to expand
    in_limited bash -c 'while :; do cat "$0" >/dev/null; done' "$work/file" &
done

status=0
for pid in "${waiters[@]}"; do
    wait "$pid" || status=1
done
total=$(sed -n 's/^some .*total=//p' "$group/memory.pressure")
[ "$status" = 0 ] || fail "idle threads are left; the group has waited for memory for ${total} us"
echo "pressure-group.sh: both gave back; the group has waited for memory for ${total} us"
