#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A ctest: what a library exports is what its version script names, both ways: a name in
# the script that nothing defines is a typing error, and a symbol outside it would be in the way of
# the program's own symbols.
# EXTRA are names that have no version and so cannot stand in the script.
# Usage: check-exports.sh LIBRARY MAP [READELF [EXTRA...]]
set -euo pipefail
library=$1 map=$2 readelf=${3:-readelf}

# Names between "global:" and "local:" (or the closing brace), comments taken out.
wanted=$(sed -e 's://.*::' -e 's:#.*::' "$map" | tr '\n' ' ' |
    sed 's:/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/::g' |
    tr '{};:' '\n' | awk '
        { gsub(/[ \t]/, "") }
        $0 == "global" { on = 1; next }
        $0 == "local" { on = 0; next }
        on && /^[A-Za-z_][A-Za-z0-9_]*$/ && !/^THRUM_/ { print }' | sort -u)
for extra in "${@:4}"; do
    wanted=$(printf '%s\n%s\n' "$wanted" "$extra" | sort -u)
done
found=$("$readelf" --dyn-syms -W "$library" |
    awk '$7 != "UND" && $7 != "ABS" && $6 != "HIDDEN" && ($5 == "GLOBAL" || $5 == "WEAK") && NF >= 8 {
        sub(/@.*/, "", $8)
        if ($8 !~ /^__odr_asan\./) print $8 # of AddressSanitizer, one for each variable
    }' |
    sort -u)

# The one map serves both architectures; these system calls exist on x86 only.
header=$("$readelf" -h "$library") # whole: a reader that has seen enough would end readelf by SIGPIPE
if ! grep -q 'Machine:.*X86-64' <<<"$header"; then
    wanted=$(grep -vxE 'arch_prctl|ioperm|iopl' <<<"$wanted")
fi

missing=$(comm -23 <(echo "$wanted") <(echo "$found"))
extra=$(comm -13 <(echo "$wanted") <(echo "$found"))
echo "$(echo "$found" | wc -l) symbols exported"
[[ -z $missing ]] || echo "named in $map but not defined: ${missing//$'\n'/ }" >&2
[[ -z $extra ]] || echo "exported but not named in $map: ${extra//$'\n'/ }" >&2
[[ -z $missing && -z $extra ]]
