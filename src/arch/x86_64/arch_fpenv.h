// SPDX-License-Identifier: Apache-2.0
/* The floating-point environment, which a new thread has from its creator (C11 7.26.5.1, and what clone does).
 *
 * Saved: MXCSR whole, the x87 control word and the x87 exception flags. Not saved: the contents of vector and
 * x87 registers, which no ABI hands to a new thread; the x87 stack is emptied on load, since a thread that left
 * by pthread_exit or cancellation in the middle of an x87 expression leaves values on it. */
#ifndef THRUM_ARCH_FPENV_H
#define THRUM_ARCH_FPENV_H

#include <stdint.h>

struct arch_fpenv {
    uint32_t mxcsr;
    uint16_t x87_control;
    uint16_t x87_status;
};

enum { ARCH_X87_EXCEPTIONS = 0x3f, ARCH_X87_DEFAULT_CONTROL = 0x037f };

static inline void arch_fpenv_save(struct arch_fpenv *env) {
    __asm__ volatile("stmxcsr %0" : "=m"(env->mxcsr));
    __asm__ volatile("fnstcw %0" : "=m"(env->x87_control));
    __asm__ volatile("fnstsw %0" : "=m"(env->x87_status));
}

/* fnstenv's 28 bytes; word 1 holds the exception flags. The only way to raise a flag without trapping. */
static inline void arch_x87_set_exceptions(uint16_t flags) {
    struct {
        uint32_t word[7];
    } env;
    __asm__ volatile("fnstenv %0" : "=m"(env));
    env.word[1] |= flags;
    __asm__ volatile("fldenv %0" : : "m"(env));
}

static inline void arch_fpenv_load(const struct arch_fpenv *env) {
    __asm__ volatile("ldmxcsr %0" : : "m"(env->mxcsr));
    __asm__ volatile("fninit");
    if (env->x87_status & ARCH_X87_EXCEPTIONS)
        arch_x87_set_exceptions(env->x87_status & ARCH_X87_EXCEPTIONS);
    if (env->x87_control != ARCH_X87_DEFAULT_CONTROL)
        __asm__ volatile("fldcw %0" : : "m"(env->x87_control));
}

#endif
