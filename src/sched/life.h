// SPDX-License-Identifier: Apache-2.0
/* A unit's beginning and its end, as far as spawning and joining share them. All inside, but for
 * unit_make_later and unit_make_successor. */
#ifndef THRUM_SCHED_LIFE_H
#define THRUM_SCHED_LIFE_H

#include "arch_context.h"
#include "base/inside.h"
#include "context/depot.h"
#include "sched/trim.h"
#include "sched/worker.h"
#include "thrum/thrum.h"

/* An external kernel thread has no cache of its own. */
INSIDE static inline __attribute__((always_inline)) struct thrum_unit *unit_new(struct worker *worker) {
    return __builtin_expect(worker != NULL, 1) ? depot_get(&unit_depot, &worker->units)
                                               : depot_get_shared(&unit_depot);
}

INSIDE static inline __attribute__((always_inline)) void unit_free(struct worker *worker,
                                                                   struct thrum_unit *unit) {
    if (__builtin_expect(unit->kind == UNIT_BOUND, 0)) {
        worker_unbind(unit->bound);
        unit->bound = NULL;
    }
    store_relaxed(&unit->kind, (uint8_t)UNIT_FREE);
    if (__builtin_expect(worker != NULL, 1)) {
        depot_put(&unit_depot, &worker->units, unit);
    } else {
        depot_put_shared(&unit_depot, unit);
        trim_tell();
    }
}

/* One that is not joined and is in no queue, for a front end to run (front.h). NULL: no memory, or `attributes`
 * contradict the runtime. */
struct attributes;
INSIDE struct thrum_unit *unit_make(struct worker *worker, const struct attributes *attributes,
                                    void *(*fn)(void *), void *arg);

/* A ULT that is never joined and is in no queue: the caller makes it a waiter, and its waker enqueues it. It has no stack until it
 * begins. 0, or an error of thrum_spawn. */
NOT_INSIDE int unit_make_later(const thrum_attr_t *attr, void *(*fn)(void *), void *arg,
                               struct thrum_unit **made);

/* Likewise, with the attributes of the caller's unit. ENOTSUP: that runs on memory of the user's, or has a kernel
 * thread of its own. */
NOT_INSIDE int unit_make_successor(void *(*fn)(void *), void *arg, struct thrum_unit **made);

/* Runs the child now, on a call. `parent` is `self` if it must be enqueued meanwhile, else NULL. */
INSIDE static inline __attribute__((always_inline)) void run_child(struct worker *worker,
                                                                   struct thrum_unit *self,
                                                                   struct thrum_unit *child,
                                                                   struct thrum_unit *parent) {
    thrum_assert(regions_open() == 1);
    worker->current = child;
    if (switch_is_slow(worker))
        call_slow(worker, self, child, parent);
    else
        arch_call(child, parent, &self->sp, unit_first_frame(child));
}

#endif
