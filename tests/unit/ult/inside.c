/* SPDX-License-Identifier: Apache-2.0 */
/* See inside.h. */
#include "inside.h"

#include "sched/worker.h"

struct worker *inside_enter(void) {
    return enter();
}

void inside_leave(void) {
    leave();
}

struct thrum_unit *inside_announce(struct worker *worker) {
    struct thrum_unit *self = unit_self(worker);
    unit_announce(self);
    return self;
}

void inside_wake(struct worker *worker, struct thrum_unit *unit) {
    unit_wake(worker, unit);
}

struct timers *inside_timers(struct worker *worker) {
    return &worker->timers;
}

int inside_is_fenced(void) {
    return scheduler.fenced;
}

unsigned long inside_patience(unsigned worker) {
    return load_relaxed(&scheduler.workers[worker]->tick.patience.moment);
}
