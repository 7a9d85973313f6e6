// SPDX-License-Identifier: Apache-2.0
/* Included by registers.h, which declares what it uses. */
#ifndef THRUM_STAT_ARCH_UCONTEXT_H
#define THRUM_STAT_ARCH_UCONTEXT_H

enum { REGISTERS_AUDIT = AUDIT_ARCH_AARCH64 };

static inline struct registers registers_of(const ucontext_t *context) {
    const mcontext_t *r = &context->uc_mcontext;
    return (struct registers){r->pc, r->sp, r->regs[29]};
}

static inline void registers_arguments(const ucontext_t *context, long a[6]) {
    for (int i = 0; i < 6; i++)
        a[i] = (long)context->uc_mcontext.regs[i];
}

static inline void registers_answer(ucontext_t *context, long answer) {
    context->uc_mcontext.regs[0] = (unsigned long long)answer;
}

static inline void registers_go_to(ucontext_t *context, uint64_t pc) {
    context->uc_mcontext.pc = pc;
}

__attribute__((always_inline)) static inline struct registers registers_here(void) {
    struct registers at;
    __asm__ volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29" : "=&r"(at.pc), "=&r"(at.sp), "=&r"(at.bp));
    return at;
}

#endif
