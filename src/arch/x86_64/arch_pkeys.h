// SPDX-License-Identifier: Apache-2.0
/* Memory protection key rights (PKRU), which a new thread has from its creator. Only to be touched where the
 * kernel has switched protection keys on. */
#ifndef THRUM_ARCH_PKEYS_H
#define THRUM_ARCH_PKEYS_H

#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>

typedef uint32_t arch_pkeys;

/* CPUID leaf 7, ECX bit 4: the operating system has set CR4.PKE. */
static inline bool arch_pkeys_available(void) {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & (1u << 4));
}

static inline arch_pkeys arch_pkeys_save(void) {
    uint32_t rights, zero;
    __asm__ volatile(".byte 0x0f,0x01,0xee" /* rdpkru */ : "=a"(rights), "=d"(zero) : "c"(0));
    return rights;
}

static inline void arch_pkeys_load(arch_pkeys rights) {
    __asm__ volatile(".byte 0x0f,0x01,0xef" /* wrpkru */ : : "a"(rights), "c"(0), "d"(0) : "memory");
}

#endif
