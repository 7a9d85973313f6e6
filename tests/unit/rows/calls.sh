#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A ctest: every system call in the kernel's headers has a class in cache/calls.h, and none has two.
# Usage: calls.sh COMPILER CALLS_H
set -euo pipefail
compiler=$1 list=$2
if ! command -v "$compiler" >/dev/null; then
  echo "skipped: no $compiler"
  exit 77
fi

# Numbers from 512 on are x32's; the last two names are no calls.
headers() {
  echo '#include <asm/unistd.h>' | "$compiler" -E -dM - |
    awk '$2 ~ /^__NR_/ && $3 !~ /^\(?(5[1-9][0-9]|5[2-9][0-9])/ { sub(/^__NR_/, "", $2); print $2 }' |
    grep -vxE 'arch_specific_syscall|syscalls' | sort -u
}
classed() { grep -oE '\bX\([a-z0-9_]+, ' "$list" | sed 's/X(//; s/, //' | sort; }
without_class() { comm -23 <(sort -u) <(classed | sort -u); }

failed=0
(($(headers | wc -l) > 250)) || { echo "the headers name $(headers | wc -l) calls only" >&2; failed=1; }
missing=$(headers | without_class)
if [[ -n $missing ]]; then
  echo "without a class in $list: ${missing//$'\n'/ }" >&2
  echo "add each with its reason; until then threads that make it retire" >&2
  failed=1
fi
twice=$(classed | uniq -d)
[[ -z $twice ]] || { echo "twice in $list: ${twice//$'\n'/ }" >&2; failed=1; }

# That it would have been noticed:
[[ $(echo call_of_tomorrow | without_class) == call_of_tomorrow ]] || { echo "this test cannot fail" >&2; failed=1; }
echo "$(headers | wc -l) calls in the headers, $(classed | wc -l) with a class"
exit $failed
