// SPDX-License-Identifier: Apache-2.0
/* What of libc's the cache knows on this architecture only. */
#ifndef THRUM_CACHE_ARCH_LIBC_H
#define THRUM_CACHE_ARCH_LIBC_H

#include <sys/io.h>

/* Functions for real.h. */
#define REAL_FUNCTIONS_ARCH(X)                                                                               \
    X(ioperm)                                                                                                \
    X(iopl)

/* Of libc on this architecture. */
#define ARCH_FIRST_VERSION "GLIBC_2.2.5"

/* The highest version of struct stat that __xstat takes. */
enum { ARCH_STAT_VERSION = 1 };

#endif
