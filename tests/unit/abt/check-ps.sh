#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A ctest: `thrum ps` and `thrum trace` name the threads of a program of Argobots' interface by the functions that they run.
# Usage: check-ps.sh THRUM LIBABT HEADER CC
set -euo pipefail
thrum=$(realpath "$1") library=$(realpath "$2") header=$(realpath "$3") cc=$4
fail() { echo "$*" >&2; exit 1; }
scratch=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid"; rm -rf "$scratch"' EXIT
cd "$scratch"
ln -s "$library" libabt.so.1

cat > program.c <<'END'
#include <abt.h>
#include <unistd.h>
void waits_to_be_resumed(void *arg);
void waits_to_be_resumed(void *arg) { (void)arg; ABT_self_suspend(); }
int main(void) {
    ABT_xstream stream;
    ABT_pool pool;
    ABT_thread thread;
    char byte;
    if (ABT_init(0, 0) != 0 || ABT_xstream_self(&stream) != 0 || ABT_xstream_get_main_pools(stream, 1, &pool) != 0)
        return 1;
    if (ABT_thread_create(pool, waits_to_be_resumed, 0, ABT_THREAD_ATTR_NULL, &thread) != 0)
        return 2;
    ABT_thread_yield();
    if (write(1, "x", 1) != 1 || read(0, &byte, 1) < 0 || ABT_thread_resume(thread) != 0)
        return 3;
    return ABT_thread_free(&thread) != 0 || ABT_finalize() != 0;
}
END
"$cc" -I"$(dirname "$header")" program.c -o program libabt.so.1 -Wl,-rpath,"$scratch"

mkfifo in out
./program < in > out &
pid=$!
exec 3> in 4< out
read -r -n 1 -u 4
"$thrum" ps "$pid" > list || fail "ps says $?"
grep -q waits_to_be_resumed list || fail "ps does not name the thread's function: $(cat list)"
exec 3>&-
wait "$pid" || fail "the program ended with $?"
pid=

"$thrum" trace -o trace.json -- ./program < /dev/null > /dev/null || fail "trace says $?"
grep -q waits_to_be_resumed trace.json || fail "the trace does not name the thread's function: $(head -c 2000 trace.json)"
