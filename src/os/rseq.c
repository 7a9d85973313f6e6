// SPDX-License-Identifier: Apache-2.0
/* See rseq.h. */
#include "os/rseq.h"

#include <stddef.h>
#include <sys/auxv.h>

#include "arch_rseq.h"
#include "os/syscall.h"

/* Libc's, where it registers its threads. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif

enum { REGISTER = 0, UNREGISTER = 1 };

static long call(uintptr_t base, unsigned length, int flags) {
    return sys(SYS_rseq, base + (uintptr_t)__rseq_offset, length, flags, ARCH_RSEQ_SIGNATURE);
}

/* The kernel wants the length that it was told at first: 32 up to libc 2.40, then what the kernel has, rounded up. */
unsigned rseq_give_up(uintptr_t base) {
    enum { FIRST_LENGTH = 32 };
    if (&__rseq_size == NULL || __rseq_size == 0)
        return 0;
    unsigned feature =
        (unsigned)((getauxval(AT_RSEQ_FEATURE_SIZE) + FIRST_LENGTH - 1) / FIRST_LENGTH * FIRST_LENGTH);
    if (call(base, FIRST_LENGTH, UNREGISTER) == 0)
        return FIRST_LENGTH;
    return feature > FIRST_LENGTH && call(base, feature, UNREGISTER) == 0 ? feature : 0;
}

void rseq_take_up(uintptr_t base, unsigned length) {
    if (length != 0)
        call(base, length, REGISTER);
}
