#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A model in another language mirrors functions of the sources by hand: when one of these changes, the model has to be
# looked at. The list has a line for each: a checksum of its text without comments and layout, file, function. Fails and
# names those that are not as they were; when the model is in step again, --write brings the list into step, too.
# Usage: check-ported.sh SOURCES LIST [--write]
set -euo pipefail

if [ $# -lt 2 ]; then
    echo "usage: check-ported.sh SOURCES LIST [--write]" >&2
    exit 2
fi
sources=$1 list=$2 mode=${3:-}

# From the line that begins with its head, or has it after `static inline`, to the brace that closes it.
text_of() {
    sed -z 's:/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/::g; s://[^\n]*::g' "$sources/$1" |
        awk -v name="$2" '
            { sub(/^((INSIDE|NOT_INSIDE|ENTERS|LEAVES|INSIDE_UNCHECKED|SIGSAFE) )+/, "") } # src/base/inside.h
            !inside && !found && /^[a-z_]/ && $0 ~ "(^|[ *])" name "\\(" && !/;$/ { inside = found = 1 }
            inside { print }
            inside && /^}/ { inside = 0 }' |
        tr -d '[:space:]'
}

new=$(mktemp)
trap 'rm -f "$new"' EXIT
changed=0
while read -r sum file function; do
    if [ "$sum" = "#" ]; then
        echo "$sum $file $function" >>"$new"
        continue
    fi
    text=$(text_of "$file" "$function")
    if [ -z "$text" ]; then
        echo "check-ported.sh: $file has no function $function" >&2
        exit 1
    fi
    now=$(printf '%s' "$text" | sha256sum | cut -c1-16)
    echo "$now $file $function" >>"$new"
    if [ "$now" != "$sum" ] && [ "$mode" != --write ]; then
        echo "check-ported.sh: $function in $file has changed: bring the model into step, then call this with --write" >&2
        changed=1
    fi
done <"$list"

[ "$mode" != --write ] || cat "$new" >"$list"
exit $changed
