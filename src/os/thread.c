// SPDX-License-Identifier: Apache-2.0
/* See thread.h. */
#include "os/thread.h"

#include <errno.h>
#include <string.h>

/* Those that a fault raises: where they are blocked, the kernel ends the process past all handlers. */
static sigbits raised_by_faults(void) {
    return signals_bit(SIGSEGV) | signals_bit(SIGBUS) | signals_bit(SIGFPE) | signals_bit(SIGILL) |
           signals_bit(SIGTRAP) | signals_bit(SIGSYS);
}

sigbits thread_quiet_mask(void) {
    return SIGBITS_ALL & ~SIGBITS_LIBC & ~raised_by_faults();
}

static int configure(pthread_attr_t *attr, size_t stack) {
    sigset_t mask;
    sigbits bits = thread_quiet_mask();
    sigemptyset(&mask);
    memcpy(&mask, &bits, sizeof bits);
    if (stack != 0)
        pthread_attr_setstacksize(attr, stack);
    return pthread_attr_setsigmask_np(attr, &mask);
}

/* Not by the caller's own mask, which the new thread would inherit: a unit that blocks signals is not preempted, and libc
 * takes locks meanwhile that a preempted one may have. EINVAL: thread-local variables take more than that stack has. */
int thread_make_quiet(pthread_t *handle, size_t stack, void *(*fn)(void *), void *arg) {
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0)
        return EAGAIN;
    int error = configure(&attr, stack);
    if (error == 0)
        error = pthread_create(handle, &attr, fn, arg);
    pthread_attr_destroy(&attr);
    if (error == EINVAL && stack != 0)
        return thread_make_quiet(handle, 0, fn, arg);
    return error == 0 ? 0 : EAGAIN;
}
