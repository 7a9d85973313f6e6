// SPDX-License-Identifier: Apache-2.0
/* Where the present thread has a module's thread-locals (kthread/fresh/tls_layout.h). */
#ifndef THRUM_ARCH_TLS_LAYOUT_H
#define THRUM_ARCH_TLS_LAYOUT_H

#include <stdint.h>

/* The block at this distance, as libc keeps it for a module. The blocks are below the thread pointer, and libc keeps the distance
 * positive. Any number may be asked about (tls_layout.c). */
static inline char *arch_tls_block(intptr_t distance) {
    uintptr_t pointer;
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    return (char *)(pointer - (uintptr_t)distance);
}

#endif
