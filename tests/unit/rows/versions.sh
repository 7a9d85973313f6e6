#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A ctest: holds the names that the cache defines against the libc that is installed.
#   - Where libc gives one of these names different meanings by version, the cache has each version, too.
#   - What libc has exported for the first time since 2.32 was looked at: either the cache defines it, or it does nothing
#     to a thread (the list below; complete up to 2.41).
# Usage: versions.sh READELF LIBRARY
set -euo pipefail
readelf=$1 library=$2
if ! command -v "$readelf" >/dev/null; then
  echo "skipped: no $readelf"
  exit 77
fi
libc=$(ldd "$library" | awk '$1 == "libc.so.6" { print $3 }')
[[ -r $libc ]] || { echo "no libc.so.6 found" >&2; exit 1; }

# NAME VERSION ADDRESS of each function that is defined and not libc's private.
functions() {
  "$readelf" --dyn-syms -W "$1" | awk '
    $7 != "UND" && ($4 == "FUNC" || $4 == "IFUNC" || $4 == "NOTYPE") && $8 !~ /PRIVATE/ {
      name = version = $8; sub(/@.*/, "", name); if (!sub(/.*@/, "", version)) version = "-"
      print name, version, $2 }'
}
libc_functions=$(functions "$libc") own=$(functions "$library")

failed=0
complain() { echo "$1" >&2; failed=1; }

# --- meanings ---
different=$(awk 'NR == FNR { own[$1] = 1; next }
  $1 in own { if ($1 in first && first[$1] != $3) differs[$1] = 1; first[$1] = $3; all[$1] = all[$1] " " $2 }
  END { for (name in differs) { n = split(all[name], v, " "); for (i = 1; i <= n; i++) print name, v[i] } }' \
  <(echo "$own") <(echo "$libc_functions"))
while read -r name version; do
  [[ -n $name ]] || continue
  grep -q "^$name $version " <<<"$own" || complain "$name@$version means something else than other versions: compat.c"
done <<<"$different"
[[ $(uname -m) != x86_64 ]] || grep -q '^pthread_kill GLIBC_2.2.5$' <<<"$different" ||
  complain "pthread_kill has one meaning only: this test sees nothing"

# --- new names ---
looked_at='stdc_.*|__isoc23_.*|arc4random.*|res_.*|dn_.*|sig(abbrev|descr)_np|strerror(desc|name)_np|(str|wcs)l(cat|cpy)
__(str|wcs)l(cat|cpy)_chk|mbrtoc8|c8rtomb|mallinfo2|timespec_getres|__memcmpeq|_dl_find_object
__x86_get_cpuid_feature_leaf|pthread_attr_[gs]etsigmask_np|posix_spawn_file_actions_add.*_np|posix_spawnattr_[gs]etcgroup_np
l?stat(64)?|fstat(64)?|fstatat(64)?|mknod(at)?|close_range|closefrom|execveat|epoll_pwait2|fs(config|mount|open|pick)
mount_setattr|move_mount|open_tree|pidfd_(getfd|getpid|send_signal)|process_m(advise|release)'
new=$(awk '{ split($2, v, "."); minor = v[2] + 0; if (!($1 in first) || minor < first[$1]) first[$1] = minor }
  END { for (name in first) if (first[name] > 31) print name }' <<<"$libc_functions" | sort -u)
unknown=$(grep -vxE "${looked_at//$'\n'/|}" <<<"$new" | grep -vxFf <(awk '{ print $1 }' <<<"$own") || true)
[[ -z $unknown ]] || complain "new in this libc, and not looked at: ${unknown//$'\n'/ }"
echo "$libc: $(wc -l <<<"$new") names since 2.32; by version differ:" \
  "$(awk '{ print $1 }' <<<"$different" | sort -u | tr '\n' ' ')"
exit $failed
