// SPDX-License-Identifier: Apache-2.0
/* See places.h. */
#include "runtime/places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "os/topology.h"
#include "sched/worker.h"

enum bind { BIND_NONE, BIND_NODE, BIND_CPU };

static struct {
    enum bind bind;
    uint32_t workers;
    uint32_t count;                    /* of `order` */
    uint16_t order[TOPOLOGY_CPUS_MAX]; /* CPUs that may be used, by nodes */
    struct cpus allowed;
} places; /* r/o while a runtime runs */

int places_configure(void) {
    static const char *const names[] = {[BIND_NONE] = "none", [BIND_NODE] = "node", [BIND_CPU] = "cpu"};
    const char *variable = getenv("THRUM_BIND");
    places.bind = BIND_NONE;
    if (variable == NULL || *variable == '\0')
        return 0;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(variable, names[i]) == 0) {
            places.bind = (enum bind)i;
            return 0;
        }
    text_line("THRUM_BIND is '", variable, "'; it takes none, node or cpu");
    return EINVAL;
}

void places_start(uint32_t workers) {
    const struct topology *topology = topology_machine();
    runtime.nodes = topology->nodes;
    memset(runtime.node_of, 0, sizeof runtime.node_of);
    if (places.bind == BIND_NONE)
        return;
    places.workers = workers;
    places.count = 0;
    cpus_allowed(&places.allowed);
    for (unsigned node = 0; node < topology->nodes; node++)
        for (unsigned cpu = 0; cpu < TOPOLOGY_CPUS_MAX; cpu++)
            if (topology->node_of[cpu] == node && cpus_has(&places.allowed, cpu))
                places.order[places.count++] = (uint16_t)cpu;
}

static struct cpus cpus_of(uint32_t worker) {
    const struct topology *topology = topology_machine();
    uint16_t cpu = places.order[(uint64_t)worker * places.count / places.workers % places.count];
    struct cpus cpus = {{0}};
    if (places.bind == BIND_CPU) {
        cpus_add(&cpus, cpu);
        return cpus;
    }
    for (uint32_t i = 0; i < places.count; i++)
        if (topology->node_of[places.order[i]] == topology->node_of[cpu])
            cpus_add(&cpus, places.order[i]);
    return cpus;
}

bool places_are_bound(void) {
    return places.bind != BIND_NONE && places.count > 0;
}

/* A CPU that has been taken from the process meanwhile is no place: the worker goes where the kernel likes. */
void places_enter(uint32_t worker) {
    if (places_are_bound()) {
        struct cpus cpus = cpus_of(worker);
        cpus_allow(&cpus);
    }
    if (runtime.nodes > 1)
        store_relaxed(&runtime.node_of[worker], topology_here());
}

void places_leave(void) {
    places_roam();
}

void places_roam(void) {
    if (places_are_bound())
        cpus_allow(&places.allowed);
}
