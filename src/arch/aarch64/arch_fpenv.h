// SPDX-License-Identifier: Apache-2.0
/* The floating-point environment, which a new thread has from its creator (C11 7.26.5.1, and what clone does).
 *
 * Saved: FPCR (rounding, traps) and FPSR (exception flags). Not saved: the vector registers, which no ABI hands
 * to a new thread. */
#ifndef THRUM_ARCH_FPENV_H
#define THRUM_ARCH_FPENV_H

#include <stdint.h>

struct arch_fpenv {
    uint64_t fpcr;
    uint64_t fpsr;
};

static inline void arch_fpenv_save(struct arch_fpenv *env) {
    __asm__ volatile("mrs %0, fpcr" : "=r"(env->fpcr));
    __asm__ volatile("mrs %0, fpsr" : "=r"(env->fpsr));
}

static inline void arch_fpenv_load(const struct arch_fpenv *env) {
    __asm__ volatile("msr fpcr, %0" : : "r"(env->fpcr));
    __asm__ volatile("msr fpsr, %0" : : "r"(env->fpsr));
}

#endif
