// SPDX-License-Identifier: Apache-2.0
/* Ends of threads: pthread_exit, thrd_exit. Rows end, last-thread, c11. */
#include <stdint.h>
#include <threads.h>
#include <unistd.h>

#include "cache.h"

/* libthrum's, if the program has it: not null on its user-level threads, which end by libthrum's pthread_exit. That
 * comes after ours and before libc's. */
void *thrum_self(void) __attribute__((weak));

/* The main thread's is libc's affair, but libc counts idle threads as living ones: they have to go. */
INTERPOSE void pthread_exit(void *result) {
    if (thrum_self != NULL && thrum_self() != NULL)
        REAL(pthread_exit)(result);
    if (kthread_self_sigsafe() != NULL)
        kthread_exit(result);
    if (kthread_keeping() && cache_in_main())
        kthread_main_exits();
    REAL(pthread_exit)(result);
    __builtin_unreachable();
}

INTERPOSE void thrd_exit(int result) {
    pthread_exit((void *)(intptr_t)result);
}
