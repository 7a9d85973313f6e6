// SPDX-License-Identifier: Apache-2.0
/* A full fence on every CPU that runs a thread of this process: the rare side of a pair pays it, so that the frequent
 * side needs only a compiler barrier (membarrier(2), private expedited). */
#ifndef THRUM_OS_MEMBARRIER_H
#define THRUM_OS_MEMBARRIER_H

#include <linux/membarrier.h>
#include <stdbool.h>

#include "base/atomic.h"
#include "os/syscall.h"

/* Once per process, before the first use. False: the kernel does not have it or a filter forbids it. */
static inline bool membarrier_register(void) {
    return sys(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static inline void membarrier_expedited(void) {
    sys(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

/* The two sides of a pair. Each stores to one word before this and loads another after it; at least one of the two sees
 * the other's store. `fenced`: the process has no membarrier, so that both sides pay a fence. */
static inline void fence_frequent(bool fenced) {
    if (__builtin_expect(fenced, 0))
        fence_seq_cst();
    fence_compiler();
}

static inline void fence_rare(bool fenced) {
    if (fenced)
        fence_seq_cst();
    else
        membarrier_expedited();
}

#endif
