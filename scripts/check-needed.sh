#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A ctest: libthrum-cache.so is loaded into other people's programs, so it may bring nothing along.
# Usage: check-needed.sh LIBRARY [READELF]
set -euo pipefail
library=$1 readelf=${2:-readelf}
needed=$("$readelf" -dW "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' | sort | tr '\n' ' ')
echo "$library needs: $needed"
# The loader is the C library's own and in every process that can be preloaded; the list of modules is in it.
if [[ ! $needed =~ ^(ld-linux-[a-z0-9-]+\.so\.[0-9]+ )?libc\.so\.6\ $ ]]; then
    echo "expected libc.so.6, with or without its loader, and nothing else" >&2
    exit 1
fi
