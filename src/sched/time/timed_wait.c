// SPDX-License-Identifier: Apache-2.0
/* See timed_wait.h. */
#include "sched/time/timed_wait.h"

#include "base/container_of.h"
#include "sched/worker.h"

/* `timed_wait` is there until its unit is woken, which is done last. */
INSIDE static void end(struct worker *worker, struct timed_wait *timed_wait) {
    if (timed_wait->give_up(timed_wait))
        unit_wake(worker, timed_wait->unit);
}

INSIDE static void time_out(struct worker *worker, struct timer *timer) {
    end(worker, container_of(timer, struct timed_wait, timer));
}

INSIDE static void end_by_cancel(struct worker *worker, struct cancel_watch *watch) {
    end(worker, container_of(watch, struct timed_wait, watch));
}

INSIDE static void block_external(struct timed_wait *timed_wait) {
    struct thrum_unit *unit = timed_wait->unit;
    if (unit_block_external_until(unit, timed_wait->timer.deadline) || !timed_wait->give_up(timed_wait))
        unit_block_external(unit); /* woken, or about to be */
    else
        unit_await_no_more(unit);
}

void unit_block_timed(struct worker *worker, struct timed_wait *timed_wait) {
    uint64_t deadline = timed_wait->timer.deadline;
    if (deadline == TIMER_NEVER) {
        unit_block(worker, timed_wait->unit);
        return;
    }
    if (deadline <= timer_now() && timed_wait->give_up(timed_wait)) {
        (void)cancel_is_point(timed_wait->unit); /* that was it */
        unit_await_no_more(timed_wait->unit);
        return;
    }
    if (worker == NULL) {
        block_external(timed_wait);
        return;
    }
    struct thrum_unit *self = timed_wait->unit;
    bool is_point = cancel_is_point(self), has_timer = deadline < CANCEL_FAR;
    timed_wait->timer.fire = time_out;
    timed_wait->watch.give_up = end_by_cancel;
    if (is_point && !cancel_watch(self, &timed_wait->watch)) {
        if (timed_wait->give_up(timed_wait)) {
            unit_await_no_more(self);
            return;
        }
        is_point = has_timer = false; /* another thread is about to wake us */
    }
    bool is_solo = worker_is_solo(worker);
    if (has_timer && is_solo)
        worker->solo.timer = &timed_wait->timer; /* which its loop waits for itself */
    else if (has_timer)
        timer_start(worker, &timed_wait->timer);
    unit_block(worker, self);
    if (has_timer && !is_solo)
        timer_stop(worker_here(), &timed_wait->timer);
    if (is_point)
        cancel_unwatch(self);
}
