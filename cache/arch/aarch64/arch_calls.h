// SPDX-License-Identifier: Apache-2.0
/* System calls that this architecture has besides those of all (calls.h): none. */
#ifndef THRUM_CACHE_ARCH_CALLS_H
#define THRUM_CACHE_ARCH_CALLS_H

#include <stdbool.h>

#define ARCH_CALLS(X)
#define ARCH_CALLS_NEW(X)

/* As syscall.c's answered(): made by the function of ours that libc has for it. */
static inline bool arch_call_answered(long number, const long *a, long *answer) {
    (void)number, (void)a, (void)answer;
    return false;
}

static inline bool arch_call_is_fork(long number) {
    (void)number;
    return false;
}

/* As syscall.c's path_argument. */
static inline int arch_call_path_argument(long number) {
    (void)number;
    return -1;
}

static inline bool arch_call_lists(long number) {
    (void)number;
    return false;
}

#endif
