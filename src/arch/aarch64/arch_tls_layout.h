// SPDX-License-Identifier: Apache-2.0
/* Where the present thread has a module's thread-locals (kthread/fresh/tls_layout.h). */
#ifndef THRUM_ARCH_TLS_LAYOUT_H
#define THRUM_ARCH_TLS_LAYOUT_H

#include <stdint.h>

/* The block at this distance, as libc keeps it for a module. The blocks are above the thread pointer. Any number may be asked about
 * (tls_layout.c). */
static inline char *arch_tls_block(intptr_t distance) {
    return (char *)((uintptr_t)__builtin_thread_pointer() + (uintptr_t)distance);
}

#endif
