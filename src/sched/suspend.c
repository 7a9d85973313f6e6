// SPDX-License-Identifier: Apache-2.0
/* Waiting without an object: suspend, resume, and going straight to a thread that is suspended.
 *
 * `permit` of a unit:
 *   PERMIT_NONE       -> SUSPENDED (itself, about to wait), GIVEN (resume came first)
 *   PERMIT_GIVEN      -> NONE (itself: it does not wait)
 *   PERMIT_SUSPENDED  -> NONE (who resumes it, and then wakes it)
 * A descriptor with `extras` gets PERMIT_NONE again when it is used for another thread.
 *
 * So a resume that comes before the suspend is not lost, and two before it count as one. Each is a read-modify-write,
 * also the second, and so is the taking back: what was written before the last resume that counts is seen.
 *
 * Modelled in tests/model/deque (src/permit.rs). */
#include <errno.h>

#include "base/container_of.h"
#include "sched/cancel.h"
#include "sched/worker.h"
#include "thrum/thrum.h"

enum { PERMIT_NONE, PERMIT_GIVEN, PERMIT_SUSPENDED };

struct suspension {
    struct cancel_watch watch;
    struct thrum_unit *unit;
};

static void be_cancelled(struct worker *worker, struct cancel_watch *watch) {
    struct thrum_unit *unit = container_of(watch, struct suspension, watch)->unit;
    if (unit_take_suspended(unit))
        unit_wake(worker, unit);
}

/* It is PERMIT_SUSPENDED from before the watch is there: where there is a request already, it takes itself back. */
static void block(struct worker *worker, struct thrum_unit *self) {
    struct suspension suspension = {.watch = {.give_up = be_cancelled}, .unit = self};
    cancel_point(worker, TIMER_NEVER);
    bool is_point = cancel_is_point(self);
    if (is_point && !cancel_watch(self, &suspension.watch)) {
        uint32_t suspended = PERMIT_SUSPENDED;
        if (cas_acq_rel(&self->permit, &suspended, PERMIT_NONE)) {
            unit_await_no_more(self);
            return;
        }
        is_point = false; /* somebody else is about to wake us */
    }
    unit_block(worker, self);
    if (is_point)
        cancel_unwatch(self);
}

int thrum_suspend(void) {
    struct worker *worker = enter();
    if (worker == NULL || !unit_may_wait(worker->current)) {
        leave();
        return EPERM;
    }
    struct thrum_unit *self = worker->current;
    uint32_t permit = PERMIT_NONE;
    self->escaped = true; /* who resumes it has its handle */
    store_relaxed(&self->extras, true);
    unit_await(self, AWAITS_RESUME, NULL);
    if (cas_acq_rel(&self->permit, &permit, PERMIT_SUSPENDED)) {
        block(worker, self);
    } else {
        unit_await_no_more(self);
        exchange_acq_rel(&self->permit, (uint32_t)PERMIT_NONE);
    }
    leave();
    return cancel_act(ETIMEDOUT), 0;
}

bool unit_take_suspended(struct thrum_unit *unit) {
    uint32_t permit = load_relaxed(&unit->permit);
    for (;;) {
        store_relaxed(&unit->extras, true);
        uint32_t next = permit == PERMIT_SUSPENDED ? PERMIT_NONE : PERMIT_GIVEN;
        if (cas_acq_rel(&unit->permit, &permit, next)) /* also from GIVEN to GIVEN */
            return next == PERMIT_NONE;
    }
}

void thrum_resume(thrum_t unit) {
    struct worker *worker = enter();
    if (unit_take_suspended(unit))
        unit_wake(worker, unit);
    leave();
}

void thrum_switch_to(thrum_t unit) {
    struct worker *worker = enter();
    if (unit_take_suspended(unit)) {
        struct thrum_unit *self = worker != NULL ? worker->current : NULL;
        if (self == NULL || load_relaxed(&self->kind) != UNIT_ULT || load_relaxed(&unit->kind) != UNIT_ULT ||
            worker->obeys) {
            unit_wake(worker, unit);
        } else {
            unit_await_no_more(unit);
            unit_announce(self);
            if (!yield_ring_push(&worker->yields, self))
                run_queue_overflow(self);
            idle_wake_check(&scheduler.idle);
            switch_as(worker, self, unit, THRUM_TRACE_YIELD);
        }
    }
    leave();
}
