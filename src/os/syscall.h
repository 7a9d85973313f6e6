// SPDX-License-Identifier: Apache-2.0
/* sys(NR, ...): a raw system call with up to six arguments, each cast to long. Returns -errno on failure.
 * Used where libc's wrapper would touch errno, be a cancellation point, or be one of our own interposers. */
#ifndef THRUM_OS_SYSCALL_H
#define THRUM_OS_SYSCALL_H

#include <sys/syscall.h>

#include "arch_syscall.h"

#define SYS_ARGS_(n, a, b, c, d, e, f, ...)                                                                  \
    arch_syscall6((n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define sys(...) SYS_ARGS_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

#endif
