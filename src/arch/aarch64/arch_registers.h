// SPDX-License-Identifier: Apache-2.0
/* Registers that clone copies from the creator, beside those of arch_fpenv.h: the bits of PSTATE that a program may
 * set. DIT (timing that does not depend on data), SSBS (speculative stores), TCO (tag checks off). Which of them this
 * processor and kernel have is told by the auxiliary vector. */
#ifndef THRUM_ARCH_REGISTERS_H
#define THRUM_ARCH_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/auxv.h>

struct arch_registers {
    uint64_t dit, ssbs, tco;
};

/* What arch_registers_save and _load are told. */
typedef struct {
    bool dit, ssbs, tco;
} arch_registers_known;

static inline arch_registers_known arch_registers_find(void) {
    enum { DIT = 1 << 24, SSBS = 1 << 28, MTE = 1 << 18 };
    const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
    return (arch_registers_known){(first & DIT) != 0, (first & SSBS) != 0, (second & MTE) != 0};
}

static inline bool arch_registers_all(arch_registers_known has) {
    (void)has;
    return true;
}

/* By number: an older assembler does not know their names. */
static inline void arch_registers_save(struct arch_registers *registers, arch_registers_known has) {
    *registers = (struct arch_registers){0, 0, 0};
    if (has.dit)
        __asm__ volatile("mrs %0, s3_3_c4_c2_5" : "=r"(registers->dit));
    if (has.ssbs)
        __asm__ volatile("mrs %0, s3_3_c4_c2_6" : "=r"(registers->ssbs));
    if (has.tco)
        __asm__ volatile("mrs %0, s3_3_c4_c2_7" : "=r"(registers->tco));
}

static inline void arch_registers_load(const struct arch_registers *wanted, arch_registers_known has) {
    struct arch_registers now;
    arch_registers_save(&now, has);
    if (now.dit != wanted->dit)
        __asm__ volatile("msr s3_3_c4_c2_5, %0" : : "r"(wanted->dit));
    if (now.ssbs != wanted->ssbs)
        __asm__ volatile("msr s3_3_c4_c2_6, %0" : : "r"(wanted->ssbs));
    if (now.tco != wanted->tco)
        __asm__ volatile("msr s3_3_c4_c2_7, %0" : : "r"(wanted->tco));
}

/* First of all after a job: none of these bits is in the way of this library. */
static inline void arch_registers_calm(void) {}

#endif
