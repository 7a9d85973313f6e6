#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A ctest: a folder includes only folders listed before it in docs/internals/architecture.md. The order stands
# here a second time, as numbers; the command may use the public headers, and of src/inspect two of its own, and base/atomic.h.
# What belongs in one place is nowhere else: atomic operations without a name, what depends on the CPU.
# Usage: check-layers.sh SOURCE_FOLDER
set -euo pipefail
cd "$1"

mapfile -t files < <(find include/thrum src cache stat cli -name '*.[chS]' -o -name '*.[ch]pp' 2>/dev/null | sort)
((${#files[@]})) || { echo "no sources in $1" >&2; exit 1; }

awk '
    function layer_of_file(path) {
        if (path ~ /^include\//) return 0
        if (path ~ /^src\/base\//) return 1
        if (path ~ /^src\/arch\//) return 2
        if (path ~ /^src\/os\//) return 3
        if (path ~ /^src\/kthread\//) return 4
        if (path ~ /^src\/context\//) return 5
        if (path ~ /^src\/sched\//) return 6
        if (path ~ /^src\/preempt\//) return 7
        if (path ~ /^src\/sync\//) return 8
        if (path ~ /^src\/inspect\//) return 9
        if (path ~ /^src\/runtime\//) return 10
        if (path ~ /^(cache|stat)\//) return 11
        return path ~ /^cli\/tools\// ? 12 : 13
    }
    function layer_of_header(name, own) {
        if (name ~ /^thrum\//) return 0
        if (name ~ /^base\//) return 1
        if (name ~ /^arch_/) return 2
        if (name ~ /^os\//) return 3
        if (name ~ /^kthread\//) return 4
        if (name ~ /^context\//) return 5
        if (name ~ /^sched\//) return 6
        if (name ~ /^preempt\//) return 7
        if (name ~ /^sync\//) return 8
        if (name ~ /^inspect\//) return 9
        if (name ~ /^runtime\//) return 10
        if (name ~ /^tools\//) return 12
        if (name ~ /^stat\//) return 13 # cli/stat/, and stat/probe.h, which is for the command as well
        if (name ~ /\//) return -1 # a folder that is not in the list
        return own
    }
    match($0, /^[ \t]*#[ \t]*include[ \t]*["<][^">]*[">]/) {
        name = substr($0, RSTART, RLENGTH)
        system_header = name ~ /</
        gsub(/^[^"<]*["<]|[">]$/, "", name)
        if (system_header && name !~ /^thrum\//) next
        own = layer_of_file(FILENAME)
        layer = layer_of_header(name, own)
        if (layer < 0 || layer > own || (own >= 12 && layer != 0 && layer < 12 && name !~ /^(inspect\/(inspect|report)|base\/atomic)\.h$/) ||
            (own == 11 && layer > 4 && layer < 11)) {
            printf "%s:%d: includes %s\n", FILENAME, FNR, name
            bad++
        }
    }
    END { exit bad > 0 }
' "${files[@]}" ||
    { echo "these includes go against the order of folders in docs/internals/architecture.md" >&2; exit 1; }
# abt/ has one header of libthrum's inside.
if [[ -d abt ]]; then
    ! grep -nHE '^ *# *include *"' abt/*.[ch] | grep -vE '"(base/[a-z_]+|sched/front|thrum/[a-z]+|[a-z]+)\.h"' ||
        { echo "abt/ includes of libthrum only the public headers, sched/front.h and base/" >&2; exit 1; }
fi
# bench/alternatives is linked with the cache, from its layers.
alternatives=()
if [[ -d bench/alternatives ]]; then
    alternatives=(bench/alternatives/*.[ch])
    ! grep -nHE '^ *# *include *"' "${alternatives[@]}" | grep -vE '"((base|os|kthread)/[a-z_/]+|[a-z_]+)\.h"' ||
        { echo "bench/alternatives/ includes of the core only base/, os/ and kthread/" >&2; exit 1; }
fi
! grep -nE '\<(__atomic_[a-z_]+|__sync_[a-z_]+|atomic_(thread|signal)_fence) *\(' "${files[@]}" abt/*.[ch] "${alternatives[@]}" |
    grep -vE '^src/base/atomic\.h:|std::atomic_' ||
    { echo "atomic operations and fences have names in src/base/atomic.h, with the memory order in them" >&2; exit 1; }
! grep -nE '\<__(x86_64|amd64|i386|aarch64|arm|riscv|powerpc|s390x?)_*\>' "${files[@]}" abt/*.[ch] "${alternatives[@]}" | grep -vE '^(src|cache|stat|cli)/arch/' ||
    { echo "what depends on the CPU stands in the folder arch/<cpu>/ of src, cache, stat or cli (docs/internals/porting.md)" >&2; exit 1; }
# A folder of a library is read as a whole: with more files than this it wants folders inside.
printf '%s\n' "${files[@]}" | grep -E '^(src|cache|stat)/' | sed 's:/[^/]*$::' | sort | uniq -c | awk '$1 > 60 { print $2 ": " $1 " files"; bad++ } END { exit bad > 0 }' ||
    { echo "a folder of src, cache or stat has at most 60 files: give a concept that has several a folder inside" >&2; exit 1; }
echo "${#files[@]} files, each includes only what is listed before it"
