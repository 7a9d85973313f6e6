// SPDX-License-Identifier: Apache-2.0
/* Memory protection key rights (PKRU), which a new thread has from its creator. Only to be touched where the
 * kernel has switched protection keys on: where pkey_alloc has answered with a key, or libc says so (cache/init.c). Not
 * asked by CPUID, which a program may forbid itself (arch_prctl). */
#ifndef THRUM_ARCH_PKEYS_H
#define THRUM_ARCH_PKEYS_H

#include <stdint.h>

typedef uint32_t arch_pkeys;

enum { ARCH_PKEYS = 1 }; /* the rights can be handed on */

static inline arch_pkeys arch_pkeys_save(void) {
    uint32_t rights, zero;
    __asm__ volatile(".byte 0x0f,0x01,0xee" /* rdpkru */ : "=a"(rights), "=d"(zero) : "c"(0));
    return rights;
}

static inline void arch_pkeys_load(arch_pkeys rights) {
    __asm__ volatile(".byte 0x0f,0x01,0xef" /* wrpkru */ : : "a"(rights), "c"(0), "d"(0) : "memory");
}

#endif
