/* SPDX-License-Identifier: Apache-2.0 */
/* NUMA nodes (src/os/topology.h, sched/worker.h), for tests in C++. */
#pragma once

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads nodes from a folder like /sys/devices/system/node: how many, and which one each CPU belongs to. */
unsigned nodes_read(const char *folder, unsigned node_of[], unsigned cpus);

/* The next runtime finds its nodes there; NULL: the machine's own. */
void nodes_pretend(const char *folder);

/* Of the runtime: how many nodes, and where this worker was last. */
unsigned nodes_known(void);
unsigned nodes_of_worker(unsigned number);

#ifdef __cplusplus
}
#endif
