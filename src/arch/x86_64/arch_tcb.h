// SPDX-License-Identifier: Apache-2.0
/* The thread control block that this kernel thread uses: libc's own record of a thread, with the thread-local variables
 * beside it. FS base points to it. */
#ifndef THRUM_ARCH_TCB_H
#define THRUM_ARCH_TCB_H

#include <asm/prctl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#include "arch_syscall.h"

/* Its first word is its own address (the ABI's TLS variant II). */
static inline uintptr_t arch_tcb(void) {
    uintptr_t base;
    __asm__ volatile("movq %%fs:0, %0" : "=r"(base));
    return base;
}

/* The memory that libc has allocated for this block's dynamic thread-locals (the ABI's DTV). The block's second word names
 * the second of its entries, of 16 bytes each. A thread's creator reads it: TSan, which takes the thread's own start for a
 * write of its whole block, sees a race. */
__attribute__((no_sanitize("thread"))) static inline void *arch_tcb_dtv(uintptr_t base) {
    return *(char **)(base + 8) - 16;
}

/* May the program change it without the kernel? */
static inline bool arch_tcb_is_cheap(void) {
    enum { FSGSBASE = 2 }; /* HWCAP2_FSGSBASE */
    return getauxval(AT_HWCAP2) & FSGSBASE;
}

/* From here on thread-locals are others: what calls this must not touch any in between, nor return to what kept the
 * address of one. */
static inline void arch_tcb_install(uintptr_t base, bool is_cheap) {
    if (__builtin_expect(is_cheap, 1))
        __asm__ volatile("wrfsbase %0" : : "r"(base) : "memory");
    else
        arch_syscall6(SYS_arch_prctl, ARCH_SET_FS, (long)base, 0, 0, 0, 0);
}

/* Where the word `name` (arch_tls.h) lies in that block. */
#define ARCH_TCB_WORD(base, name)                                                                            \
    ({                                                                                                       \
        uintptr_t offset_;                                                                                   \
        __asm__("movq " #name "@gottpoff(%%rip), %0" : "=r"(offset_));                                       \
        (__typeof__(name) *)((base) + offset_);                                                              \
    })

#endif
