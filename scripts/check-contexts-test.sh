#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A ctest: check-contexts.sh finds a function that is called in the wrong context. Needs clang, else it ends with 77.
# Usage: check-contexts-test.sh SOURCE_FOLDER
set -euo pipefail
check=$1/scripts/check-contexts.sh
command -v clang >/dev/null || { echo "clang: not installed"; exit 77; }
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cp -r "$1/include" "$1/src" "$tree"

failed=0
finds() { # WHAT BODY: what is said of a function with this body; nothing: it is right
    local output status=0
    printf '#include "sched/worker.h"\nvoid f(struct worker *worker);\nvoid f(struct worker *worker) {\n    %s\n}\n' \
        "$2" >"$tree/src/sched/planted.c"
    output=$(bash "$check" "$tree" src/sched/planted.c 2>&1) || status=1
    if [[ -z $1 && $status != 0 || -n $1 && ($status == 0 || $output != *"$1"*) ]]; then
        echo "of '$2' it says: $output" >&2
        failed=1
    fi
}

finds "" "enter(); unit_wake(worker, worker->kept); leave();"
finds "calling function 'unit_wake' requires holding region" "unit_wake(worker, worker->kept);"
finds "is still held at the end of function" "enter(); unit_wake(worker, worker->kept);"
finds "that was not held" "(void)worker; leave();"
finds "that is already held" "(void)worker; enter(); enter(); leave(); leave();"
finds "cannot call function 'own_unmake' while" "enter(); own_unmake(worker); leave();"
exit $failed
