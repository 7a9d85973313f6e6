// SPDX-License-Identifier: Apache-2.0
/* Where the calling thread runs. */
#ifndef THRUM_OS_TOPOLOGY_H
#define THRUM_OS_TOPOLOGY_H

#include <sched.h>

enum { TOPOLOGY_NODES_MAX = 64 };

/* The NUMA node of the CPU that the caller runs on now, below TOPOLOGY_NODES_MAX; larger machines share.
 * getcpu is answered by the vDSO where there is one. */
static inline unsigned topology_node(void) {
    unsigned cpu = 0, node = 0;
    getcpu(&cpu, &node);
    return node % TOPOLOGY_NODES_MAX;
}

#endif
