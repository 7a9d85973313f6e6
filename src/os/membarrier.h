// SPDX-License-Identifier: Apache-2.0
/* A full fence on every CPU that runs a thread of this process: the rare side of a pair pays it, so that the frequent
 * side needs only a compiler barrier (membarrier(2), private expedited). */
#ifndef THRUM_OS_MEMBARRIER_H
#define THRUM_OS_MEMBARRIER_H

#include <linux/membarrier.h>
#include <stdbool.h>

#include "os/syscall.h"

/* Once per process, before the first use. False: the kernel does not have it or a filter forbids it. */
static inline bool membarrier_register(void) {
    return sys(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static inline void membarrier_expedited(void) {
    sys(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

#endif
