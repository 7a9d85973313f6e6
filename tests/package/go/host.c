// SPDX-License-Identifier: Apache-2.0
/* Threads that call a Go library, and are preempted in it and elsewhere. The runtime of Go blocks all signals while it looks for a
 * place of its own for the caller, and waits in it for threads that may have been preempted. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <thrum/thrum.h>

#include "lib.h"

enum { THREADS = 16, CALLS = 30 };

static void *run(void *unused) {
    for (int i = 0; i < CALLS; i++) {
        for (uint64_t end = thrum_now() + 300 * THRUM_US; thrum_now() < end;) {
        }
        if (Work(500) != Work(500))
            abort();
    }
    return unused;
}

int main(void) {
    thrum_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (thrum_spawn(&threads[i], NULL, run, NULL) != 0)
            abort();
    for (int i = 0; i < THREADS; i++)
        thrum_join(threads[i], NULL);
    return puts("all have ended") == EOF;
}
