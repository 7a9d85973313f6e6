// SPDX-License-Identifier: Apache-2.0
/* What a signal handler reads from the context that it interrupted. */
#ifndef THRUM_ARCH_FAULT_H
#define THRUM_ARCH_FAULT_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* AAPCS64 has none; nothing below the stack pointer is touched but by what stores and moves it in one. */
enum { ARCH_RED_ZONE = 512 };

static inline uintptr_t arch_fault_sp(const ucontext_t *context) {
    return context->uc_mcontext.sp;
}

static inline uintptr_t arch_fault_pc(const ucontext_t *context) {
    return context->uc_mcontext.pc;
}

/* A call puts nothing on the stack. */
static inline bool arch_fault_calls(const ucontext_t *context, uintptr_t address, uintptr_t function) {
    (void)context, (void)address, (void)function;
    return false;
}

/* The register of a function's first argument, or of its third. */
static inline uintptr_t arch_fault_argument(const ucontext_t *context, bool third) {
    return context->uc_mcontext.regs[third ? 2 : 0];
}

#endif
