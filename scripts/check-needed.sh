#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A ctest: libthrum-cache.so and libthrum-stat.so are loaded into other people's programs, so they may bring nothing
# along; libthrum.so brings gcc's unwinder.
# Usage: check-needed.sh LIBRARY READELF [NEEDED...], what it may need besides libc
set -euo pipefail
library=$1 readelf=$2
shift 2
# The loader is the C library's own and in every process; the list of modules is in it.
allowed='libc\.so\.6|ld-linux-[a-z0-9-]+\.so\.[0-9]+'
for name; do
    allowed+="|${name//./\\.}"
done
needed=$("$readelf" -dW "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p')
echo "$library needs: ${needed//$'\n'/ }"
grep -qx 'libc\.so\.6' <<<"$needed" || { echo "not even libc.so.6: is this a library?" >&2; exit 1; }
! grep -vxE "$allowed" <<<"$needed" || { echo "these are not expected" >&2; exit 1; }
