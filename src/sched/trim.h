// SPDX-License-Identifier: Apache-2.0
/* Giving memory back while the runtime runs. See trim.c. */
#ifndef THRUM_SCHED_TRIM_H
#define THRUM_SCHED_TRIM_H

#include "base/inside.h"
#include "context/depot.h"
#include "sched/worker.h"

void trim_init(void);

/* Sees to it that memory is given back; r/o from trim_init on. A pointer, since what it does needs threads. */
extern void (*trim_arm)(struct worker *worker);

_Static_assert(DEPOT_SURPLUS &DEPOT_LACKING & 1 && !(DEPOT_ARMED & 1), "one test in trim_look");

/* Now and then, and before it parks: sees to it that what lies in the depots since a burst is given back. */
INSIDE static inline void trim_look(struct worker *worker) {
    if (__builtin_expect(load_relaxed(&depot_surplus) & 1, 0))
        trim_arm(worker);
}

/* Should a worker that is about to park rather look? Not where it lacks memory: it would look for ever. */
static inline bool trim_is_wanted(void) {
    return load_relaxed(&depot_surplus) == DEPOT_SURPLUS;
}

/* A thread that does not look has given something to a depot: an external kernel thread, or a worker that ends. All
 * other workers may be parked: this is a push (idle.h). */
INSIDE static inline void trim_tell(void) {
    if (__builtin_expect(trim_is_wanted(), 0))
        idle_wake_check(&runtime.idle);
}

#endif
