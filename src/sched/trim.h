// SPDX-License-Identifier: Apache-2.0
/* Giving memory back while the runtime runs. See trim.c. */
#ifndef THRUM_SCHED_TRIM_H
#define THRUM_SCHED_TRIM_H

#include "context/depot.h"
#include "sched/worker.h"

void trim_init(void);

void trim_arm(struct worker *worker);

/* Now and then, and before it parks: sees to it that what lies in the depots since a burst is given back. Inside. */
static inline void trim_look(struct worker *worker) {
    if (__builtin_expect(load_relaxed(&depot_surplus) == DEPOT_SURPLUS, 0))
        trim_arm(worker);
}

#endif
