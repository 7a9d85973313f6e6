// SPDX-License-Identifier: Apache-2.0
/* Where the present thread has a module's thread-locals (kthread/fresh/tls_layout.h). */
#ifndef THRUM_ARCH_TLS_LAYOUT_H
#define THRUM_ARCH_TLS_LAYOUT_H

#include <stdint.h>

/* The block at this distance, as libc keeps it for a module. The blocks are below the thread pointer, and libc keeps the distance positive. */
static inline char *arch_tls_block(intptr_t distance) {
    char *pointer;
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    return pointer - distance;
}

#endif
