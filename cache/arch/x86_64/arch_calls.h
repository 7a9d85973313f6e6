// SPDX-License-Identifier: Apache-2.0
/* System calls that this architecture has besides those of all (calls.h). */
#ifndef THRUM_CACHE_ARCH_CALLS_H
#define THRUM_CACHE_ARCH_CALLS_H

#include <stdbool.h>
#include <sys/syscall.h>

#include "real.h"

#define ARCH_CALLS(X)     CALLS_X86_64(X)
#define ARCH_CALLS_NEW(X) CALLS_NEW_X86_64(X)

/* As syscall.c's answered(): made by the function of ours that libc has for it. */
static inline bool arch_call_answered(long number, const long *a, long *answer) {
    if (number != SYS_arch_prctl)
        return false;
    *answer = arch_prctl((int)a[0], (unsigned long)a[1]);
    return true;
}

static inline bool arch_call_is_fork(long number) {
    return number == SYS_fork;
}

/* As syscall.c's path_argument. */
static inline int arch_call_path_argument(long number) {
    return number == SYS_stat || number == SYS_lstat || number == SYS_access ? 0 : -1;
}

static inline bool arch_call_lists(long number) {
    return number == SYS_getdents;
}

#endif
