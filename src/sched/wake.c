// SPDX-License-Identifier: Apache-2.0
/* See worker.h, waking: into which queue a unit goes that can run. */
#include "sched/worker.h"

#include "sched/pool/pool.h"

void run_queue_overflow(struct thrum_unit *unit) {
    fifo_push(&runtime.shared, unit);
}

__attribute__((noinline)) void unit_wake_watched(struct worker *worker, struct thrum_unit *unit) {
    annotate_happens_before(unit);
    trace_wake(worker, unit);
}

void unit_wake_elsewhere(struct worker *worker, struct thrum_unit *unit) {
    enum unit_kind place = unit_place(unit);
    /* Pairs with the stores of unit_set_pool and move (migrate.c). */
    struct thrum_pool *pool =
        place == UNIT_POOLED || place == UNIT_TASKLET ? load_acquire(&unit->pool) : NULL;
    if (__builtin_expect(place >= UNIT_EXTERNAL, 0)) {
        if (place == UNIT_EXTERNAL)
            unit_wake_external(unit);
        else
            solo_wake(load_relaxed(&unit->bound)); /* unit_place has acquired it */
    } else if (place == UNIT_BOUND &&
               __builtin_expect(unit_is_fronts(unit), 0)) { // NOLINT(bugprone-branch-clone)
        pool_push(load_relaxed(&unit->pool), unit);         /* its host sees that it runs at home */
    } else if (place == UNIT_BOUND) {
        struct worker *home = load_relaxed(&unit->bound);
        fifo_push(&home->inbox, unit);
        idle_wake_this(&runtime.idle, &home->parking);
    } else if (pool != NULL) {
        pool_push(pool, unit);
    } else if (worker != NULL) {
        run_queue_push(worker, unit);
    } else {
        fifo_push(&runtime.shared, unit);
        idle_wake_check(&runtime.idle);
    }
}
