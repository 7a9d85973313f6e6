// SPDX-License-Identifier: Apache-2.0
/* What a signal handler reads from the context that it interrupted. */
#ifndef THRUM_ARCH_FAULT_H
#define THRUM_ARCH_FAULT_H

#include <stdint.h>
#include <ucontext.h>

/* Code may use so many bytes below its stack pointer (System V ABI, 3.2.2). */
enum { ARCH_RED_ZONE = 128 };

static inline uintptr_t arch_fault_sp(const ucontext_t *context) {
    return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
}

static inline uintptr_t arch_fault_pc(const ucontext_t *context) {
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
}

/* The register of a function's first argument. */
static inline uintptr_t arch_fault_argument(const ucontext_t *context) {
    return (uintptr_t)context->uc_mcontext.gregs[REG_RDI];
}

#endif
