// SPDX-License-Identifier: Apache-2.0
/* Registers that clone copies from the creator, beside those of arch_fpenv.h and arch_pkeys.h: the base of GS, the
 * segment selectors, and of the flags AC (unaligned accesses fault) and ID. Not among them: FS, which is libc's own,
 * the arithmetic flags, which are nothing by the ABI, and DF, which it wants clear.
 *
 * The base of GS can be read and written without the kernel where it has set CR4.FSGSBASE (AT_HWCAP2). Elsewhere only
 * arch_prctl changes it (cache/arch/x86_64/registers.c). */
#ifndef THRUM_ARCH_REGISTERS_H
#define THRUM_ARCH_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/auxv.h>

enum {
    ARCH_FLAG_AC = 1 << 18,
    ARCH_FLAG_ID = 1 << 21,
    ARCH_FLAGS = ARCH_FLAG_AC | ARCH_FLAG_ID,
    ARCH_USER_DATA = 0x2b, /* the kernel's data segment for programs */
};

struct arch_registers {
    uint64_t gs_base;
    uint32_t flags;
    uint16_t ds, es, gs;
};

/* What arch_registers_save and _load are told: what this processor and kernel have. */
typedef bool arch_registers_known;

static inline arch_registers_known arch_registers_find(void) {
    enum { FSGSBASE = 1 << 1 };
    return (getauxval(AT_HWCAP2) & FSGSBASE) != 0;
}

static inline bool arch_registers_all(arch_registers_known has_gs) {
    return has_gs;
}

static inline void arch_registers_save(struct arch_registers *registers, arch_registers_known has_gs) {
    registers->flags = (uint32_t)__builtin_ia32_readeflags_u64() & ARCH_FLAGS;
    __asm__ volatile("movw %%ds, %0" : "=m"(registers->ds));
    __asm__ volatile("movw %%es, %0" : "=m"(registers->es));
    __asm__ volatile("movw %%gs, %0" : "=m"(registers->gs));
    registers->gs_base = 0;
    if (has_gs)
        __asm__ volatile("rdgsbase %0" : "=r"(registers->gs_base));
}

/* A selector of a table of the program's own may be gone by now. */
static inline bool arch_selector_differs(uint16_t now, uint16_t wanted) {
    return now != wanted && (wanted == 0 || wanted == ARCH_USER_DATA);
}

static inline void arch_registers_load(const struct arch_registers *wanted, arch_registers_known has_gs) {
    struct arch_registers now;
    arch_registers_save(&now, has_gs);
    if (arch_selector_differs(now.ds, wanted->ds))
        __asm__ volatile("movw %0, %%ds" : : "r"(wanted->ds));
    if (arch_selector_differs(now.es, wanted->es))
        __asm__ volatile("movw %0, %%es" : : "r"(wanted->es));
    if (has_gs && arch_selector_differs(now.gs, wanted->gs))
        __asm__ volatile("movw %0, %%gs" : : "r"(wanted->gs));
    if (has_gs && (now.gs_base != wanted->gs_base || now.gs != wanted->gs))
        __asm__ volatile("wrgsbase %0" : : "r"(wanted->gs_base) : "memory");
    if (now.flags != wanted->flags)
        __builtin_ia32_writeeflags_u64((__builtin_ia32_readeflags_u64() & ~(uint64_t)ARCH_FLAGS) |
                                       wanted->flags);
}

/* First of all after a job: neither this library nor libc runs with AC set. */
static inline void arch_registers_calm(void) {
    uint64_t flags = __builtin_ia32_readeflags_u64();
    if (flags & ARCH_FLAG_AC)
        __builtin_ia32_writeeflags_u64(flags & ~(uint64_t)ARCH_FLAG_AC);
}

#endif
