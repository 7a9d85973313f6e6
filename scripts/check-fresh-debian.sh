#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The promise of the README, kept: a Debian 12 with nothing but bash and apt, a clone of what is
# committed, ./test. Part of make test-all.
# Usage: scripts/check-fresh-debian.sh [COMMAND in the clone; ./test unless told]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/chroot.sh

chroot_possible
command=${1:-./test}
chroot_fresh bookworm fresh
for program in gcc git make cmake; do
    [[ ! -e $chroots/fresh/usr/bin/$program ]] ||
        { echo "$program is there: not a fresh system" >&2; exit 1; }
done
git clone --quiet --no-hardlinks . "$chroots/fresh/root/thrum"
rm -rf "$chroots/fresh/root/thrum/.git" # what a downloaded archive would be
echo "$command of $(git rev-parse --short HEAD) in a fresh Debian 12"
chroot_run bookworm fresh bash -c "cd /root/thrum && $command"
rm -rf "${chroots:?}/fresh"
