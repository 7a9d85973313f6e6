// SPDX-License-Identifier: Apache-2.0
/* Where the calling thread runs, and which CPUs belong together. */
#ifndef THRUM_OS_TOPOLOGY_H
#define THRUM_OS_TOPOLOGY_H

#include <sched.h>
#include <stdint.h>

#include "base/inside.h"

enum { TOPOLOGY_NODES_MAX = 64, TOPOLOGY_CPUS_MAX = 4096 };

/* The NUMA node of the CPU that the caller runs on now, below TOPOLOGY_NODES_MAX; larger machines share.
 * getcpu is answered by the vDSO where there is one. */
static inline unsigned topology_node(void) {
    unsigned cpu = 0, node = 0;
    getcpu(&cpu, &node);
    return node % TOPOLOGY_NODES_MAX;
}

/* --- nodes by sysfs ----------------------------------------------------------------------------------- */

struct topology {
    unsigned nodes;                     /* that have CPUs, 1 at least */
    uint8_t node_of[TOPOLOGY_CPUS_MAX]; /* counted from 0 without gaps; what is unknown is on node 0 */
};

/* From a folder like /sys/devices/system/node. One node where there is none, or only one with CPUs. */
SIGSAFE void topology_read(const char *folder, struct topology *topology);

/* This machine's, read by the first caller; others do not wait for it, so allow one caller only. */
SIGSAFE const struct topology *topology_machine(void);

/* The node, counted like these, of the CPU that the caller runs on. */
SIGSAFE uint8_t topology_here(void);

/* For tests: from there instead, from the next question on. NULL: the machine's own again. */
void topology_pretend(const char *folder);

/* --- CPUs that one may use ---------------------------------------------------------------------------- */

struct cpus {
    uint64_t bits[TOPOLOGY_CPUS_MAX / 64];
};

static inline int cpus_has(const struct cpus *cpus, unsigned cpu) {
    return cpus->bits[cpu / 64] >> cpu % 64 & 1;
}

static inline void cpus_add(struct cpus *cpus, unsigned cpu) {
    cpus->bits[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

unsigned cpus_count(const struct cpus *cpus);

/* The calling thread's affinity: none where the kernel does not say. And setting it; 0 or an errno. */
void cpus_allowed(struct cpus *cpus);
SIGSAFE int cpus_allow(const struct cpus *cpus);

#endif
