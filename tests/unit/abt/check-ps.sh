#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A ctest: `thrum ps` and `thrum trace` name the threads of a program of Argobots' interface by the functions that they run, and ps
# says which of them wait: one that was woken is ready before it runs.
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
void waits_to_be_resumed(void *arg), waits_for_a_value(void *arg), was_given_it(void *arg);
void waits_to_be_resumed(void *arg) { (void)arg; ABT_self_suspend(); }
void waits_for_a_value(void *arg) { ABT_eventual_wait(arg, 0); }
void was_given_it(void *arg) { ABT_eventual_wait(arg, 0); }
int main(void) {
    ABT_xstream stream;
    ABT_pool pool;
    ABT_thread thread, waiters[2];
    ABT_eventual value, given;
    char byte;
    if (ABT_init(0, 0) != 0 || ABT_xstream_self(&stream) != 0 || ABT_xstream_get_main_pools(stream, 1, &pool) != 0)
        return 1;
    if (ABT_thread_create(pool, waits_to_be_resumed, 0, ABT_THREAD_ATTR_NULL, &thread) != 0)
        return 2;
    if (ABT_eventual_create(0, &value) != 0 || ABT_eventual_create(0, &given) != 0 ||
        ABT_thread_create(pool, waits_for_a_value, value, ABT_THREAD_ATTR_NULL, &waiters[0]) != 0 ||
        ABT_thread_create(pool, was_given_it, given, ABT_THREAD_ATTR_NULL, &waiters[1]) != 0)
        return 4;
    ABT_thread_yield();
    if (ABT_eventual_set(given, 0, 0) != 0)
        return 5;
    if (write(1, "x", 1) != 1 || read(0, &byte, 1) < 0 || ABT_thread_resume(thread) != 0)
        return 3;
    if (ABT_eventual_set(value, 0, 0) != 0 || ABT_thread_free(&waiters[0]) != 0 || ABT_thread_free(&waiters[1]) != 0)
        return 6;
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
for waiter in waits_to_be_resumed waits_for_a_value; do
    grep "$waiter" list | grep -q " waits .* thrum_resume" || fail "ps does not say that $waiter waits: $(cat list)"
done
grep was_given_it list | grep -q " ready " || fail "ps does not say that the one that was woken is ready: $(cat list)"
exec 3>&-
wait "$pid" || fail "the program ended with $?"
pid=

"$thrum" trace -o trace.json -- ./program < /dev/null > /dev/null || fail "trace says $?"
grep -q waits_to_be_resumed trace.json || fail "the trace does not name the thread's function: $(head -c 2000 trace.json)"
