// SPDX-License-Identifier: Apache-2.0
/* Ends of threads: pthread_exit, thrd_exit. Rows end, last-thread, c11. */
#include <stdint.h>
#include <threads.h>
#include <unistd.h>

#include "cache.h"
#include "os/syscall.h"

/* The main thread's is libc's affair, but libc counts idle threads as living ones: they have to go. */
INTERPOSE void pthread_exit(void *result) {
    if (kthread_self_sigsafe() != NULL)
        kthread_exit(result);
    if (sys(SYS_gettid) == sys(SYS_getpid))
        kthread_main_exits();
    REAL(pthread_exit)(result);
    __builtin_unreachable();
}

INTERPOSE void thrd_exit(int result) {
    pthread_exit((void *)(intptr_t)result);
}
