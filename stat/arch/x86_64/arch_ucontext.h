// SPDX-License-Identifier: Apache-2.0
/* Included by registers.h, which declares what it uses. */
#ifndef THRUM_STAT_ARCH_UCONTEXT_H
#define THRUM_STAT_ARCH_UCONTEXT_H

enum { REGISTERS_AUDIT = AUDIT_ARCH_X86_64 };

static inline struct registers registers_of(const ucontext_t *context) {
    const greg_t *r = context->uc_mcontext.gregs;
    return (struct registers){(uint64_t)r[REG_RIP], (uint64_t)r[REG_RSP], (uint64_t)r[REG_RBP]};
}

/* Of a system call that was trapped: its arguments, and the answer that its caller gets. */
static inline void registers_arguments(const ucontext_t *context, long a[6]) {
    static const int order[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};
    for (int i = 0; i < 6; i++)
        a[i] = context->uc_mcontext.gregs[order[i]];
}

static inline void registers_answer(ucontext_t *context, long answer) {
    context->uc_mcontext.gregs[REG_RAX] = answer;
}

static inline void registers_go_to(ucontext_t *context, uint64_t pc) {
    context->uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
}

/* Of the function that this is inlined into. */
__attribute__((always_inline)) static inline struct registers registers_here(void) {
    struct registers at;
    __asm__ volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2"
                     : "=&r"(at.pc), "=&r"(at.sp), "=&r"(at.bp));
    return at;
}

#endif
