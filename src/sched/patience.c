// SPDX-License-Identifier: Apache-2.0
/* See patience.h. */
#include "sched/patience.h"

#include "base/container_of.h"
#include "sched/worker.h"

/* `patience` is there until its unit is woken, which is done last. */
static void end(struct worker *worker, struct patience *patience) {
    if (patience->give_up(patience))
        unit_wake(worker, patience->unit);
}

static void time_out(struct worker *worker, struct timer *timer) {
    end(worker, container_of(timer, struct patience, timer));
}

static void be_cancelled(struct worker *worker, struct cancel_watch *watch) {
    end(worker, container_of(watch, struct patience, watch));
}

static void block_external(struct patience *patience) {
    struct thrum_unit *unit = patience->unit;
    if (unit_block_external_until(unit, patience->timer.deadline) || !patience->give_up(patience))
        unit_block_external(unit); /* woken, or about to be */
    else
        unit_await_no_more(unit);
}

void unit_block_patiently(struct worker *worker, struct patience *patience) {
    uint64_t deadline = patience->timer.deadline;
    if (deadline == TIMER_NEVER) {
        unit_block(worker, patience->unit);
        return;
    }
    if (deadline <= timer_now() && patience->give_up(patience)) {
        (void)cancel_is_point(patience->unit); /* that was it */
        unit_await_no_more(patience->unit);
        return;
    }
    if (worker == NULL) {
        block_external(patience);
        return;
    }
    struct thrum_unit *self = patience->unit;
    bool is_point = cancel_is_point(self), has_timer = deadline < CANCEL_FAR;
    patience->timer.fire = time_out;
    patience->watch.give_up = be_cancelled;
    if (is_point && !cancel_watch(self, &patience->watch)) {
        if (patience->give_up(patience)) {
            unit_await_no_more(self);
            return;
        }
        is_point = has_timer = false; /* somebody else is about to wake us */
    }
    if (has_timer)
        timer_start(worker, &patience->timer);
    unit_block(worker, self);
    if (has_timer)
        timer_stop(worker_here(), &patience->timer);
    if (is_point)
        cancel_unwatch(self);
}
