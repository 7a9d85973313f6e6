// SPDX-License-Identifier: Apache-2.0
/* What a signal handler reads from the context that it interrupted. */
#ifndef THRUM_ARCH_FAULT_H
#define THRUM_ARCH_FAULT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

/* Code may use so many bytes below its stack pointer (System V ABI, 3.2.2). */
enum { ARCH_RED_ZONE = 128 };

static inline uintptr_t arch_fault_sp(const ucontext_t *context) {
    return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
}

static inline uintptr_t arch_fault_pc(const ucontext_t *context) {
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
}

/* The fault is that of a direct call of this function, whose return address had no place on the stack. */
static inline bool arch_fault_calls(const ucontext_t *context, uintptr_t address, uintptr_t function) {
    enum { CALL = 0xe8, LENGTH = 5 };
    uintptr_t pc = arch_fault_pc(context);
    int32_t distance;
    if (address != arch_fault_sp(context) - sizeof(void *) || *(const unsigned char *)pc != CALL)
        return false;
    memcpy(&distance, (const char *)pc + 1, sizeof distance);
    return pc + LENGTH + (uintptr_t)(intptr_t)distance == function;
}

/* The register of a function's first argument, or of its third. */
static inline uintptr_t arch_fault_argument(const ucontext_t *context, bool third) {
    return (uintptr_t)context->uc_mcontext.gregs[third ? REG_RDX : REG_RDI];
}

#endif
