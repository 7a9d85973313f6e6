/* SPDX-License-Identifier: Apache-2.0 */
/* See nodes.h. */
#include "nodes.h"

#include "os/topology.h"
#include "sched/worker.h"

unsigned nodes_read(const char *folder, unsigned node_of[], unsigned cpus) {
    static struct topology topology;
    topology_read(folder, &topology);
    for (unsigned i = 0; i < cpus; i++)
        node_of[i] = topology.node_of[i];
    return topology.nodes;
}

void nodes_pretend(const char *folder) {
    topology_pretend(folder);
}

unsigned nodes_known(void) {
    return runtime.nodes;
}

unsigned nodes_of_worker(unsigned number) {
    return load_relaxed(&runtime.node_of[number]);
}
