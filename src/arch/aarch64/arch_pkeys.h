// SPDX-License-Identifier: Apache-2.0
/* Memory protection key rights. aarch64's permission overlays (POR_EL0) appear with Linux 6.12 and with
 * processors that this project cannot run on yet; without them there is nothing to hand on. A program that
 * calls pkey_alloc here has its threads retired instead (cache/inherit.c). */
#ifndef THRUM_ARCH_PKEYS_H
#define THRUM_ARCH_PKEYS_H

#include <stdint.h>

typedef uint32_t arch_pkeys;

enum { ARCH_PKEYS = 0 };

static inline arch_pkeys arch_pkeys_save(void) {
    return 0;
}
static inline void arch_pkeys_load(arch_pkeys rights) {
    (void)rights;
}

#endif
