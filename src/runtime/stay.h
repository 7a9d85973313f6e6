// SPDX-License-Identifier: Apache-2.0
/* For what a thread does by what it has found of its worker, where it may be moved in between: was it there all the time? One that is
 * on the same worker again has been elsewhere if that has switched. */
#ifndef THRUM_RUNTIME_STAY_H
#define THRUM_RUNTIME_STAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sched/worker.h"

struct stay {
    const struct worker *worker; /* NULL: on an external kernel thread */
    uint64_t switches;
};

/* A loop that does little but switch contexts is nearly always found in code that ticks spare: it gives way here. */
static inline struct stay stay_begin(void) {
    struct worker *worker = enter();
    struct stay stay = {worker, worker != NULL ? load_relaxed(&worker->counters.switches) : 0};
    if (worker != NULL && __builtin_expect(worker->tick.last.spared, 0)) {
        worker->tick.last.spared = false;
        ARCH_TLS_CLEAR_TOP(thrum_nopreempt);
    }
    leave();
    return stay;
}

/* The caller is not moved now. */
static inline bool stay_lasts_here(struct stay stay) {
    const struct worker *worker = worker_here();
    return worker == stay.worker &&
           (worker == NULL || load_relaxed(&worker->counters.switches) == stay.switches);
}

static inline bool stay_lasts(struct stay stay) {
    (void)enter();
    bool lasts = stay_lasts_here(stay);
    leave();
    return lasts;
}

#endif
