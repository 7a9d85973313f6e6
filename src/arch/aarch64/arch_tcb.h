// SPDX-License-Identifier: Apache-2.0
/* The thread control block that this kernel thread uses: libc's own record of a thread, with the thread-local variables
 * beside it. TPIDR_EL0 points to it. */
#ifndef THRUM_ARCH_TCB_H
#define THRUM_ARCH_TCB_H

#include <stdbool.h>
#include <stdint.h>

static inline uintptr_t arch_tcb(void) {
    uintptr_t base;
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(base));
    return base;
}

/* The memory that libc has allocated for this block's dynamic thread-locals (the ABI's DTV). The block's first word names
 * the second of its entries, of 16 bytes each. A thread's creator reads it: TSan, which takes the thread's own start for a
 * write of its whole block, sees a race. */
__attribute__((no_sanitize("thread"))) static inline void *arch_tcb_dtv(uintptr_t base) {
    return *(char **)(base + 0) - 16;
}

/* May the program change it without the kernel? */
static inline bool arch_tcb_is_cheap(void) {
    return true;
}

/* From here on thread-locals are others: what calls this must not touch any in between, nor return to what kept the
 * address of one. */
static inline void arch_tcb_install(uintptr_t base, bool is_cheap) {
    (void)is_cheap;
    __asm__ volatile("msr tpidr_el0, %0" : : "r"(base) : "memory");
}

/* Where the word `name` (arch_tls.h) lies in that block. */
#define ARCH_TCB_WORD(base, name)                                                                            \
    ({                                                                                                       \
        uintptr_t offset_;                                                                                   \
        __asm__("adrp %0, :gottprel:" #name "\n\tldr %0, [%0, :gottprel_lo12:" #name "]" : "=r"(offset_));   \
        (__typeof__(name) *)((base) + offset_);                                                              \
    })

#endif
