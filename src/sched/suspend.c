// SPDX-License-Identifier: Apache-2.0
/* Waiting without an object: suspend, resume, and switching directly to a suspended thread.
 *
 * `permit` of a unit:
 *   PERMIT_NONE       -> SUSPENDED (itself, about to wait), GIVEN (resume came first)
 *   PERMIT_GIVEN      -> NONE (itself: it does not wait)
 *   PERMIT_SUSPENDED  -> NONE (the resumer, its deadline, or the canceller, which then wakes it; itself)
 * A descriptor with `extras` gets PERMIT_NONE again when it is used for another thread.
 *
 * So a resume that comes before the suspend is not lost, and two before it count as one. Each is a read-modify-write,
 * also the second, and so is the taking back: what was written before the last resume that counts is seen.
 *
 * Modelled in tests/model/deque (src/permit.rs). */
#include <errno.h>

#include "arch_return.h"
#include "base/container_of.h"
#include "sched/cancel.h"
#include "sched/suspend.h"
#include "sched/time/timed_wait.h"
#include "sched/worker.h"
#include "thrum/thrum.h"

enum { PERMIT_NONE, PERMIT_GIVEN, PERMIT_SUSPENDED };

/* On the stack of the suspended unit. */
struct suspension {
    struct timed_wait timed_wait;
    bool given_up; /* no resume came in time */
};

static bool give_up(struct timed_wait *timed_wait) {
    uint32_t suspended = PERMIT_SUSPENDED;
    if (!cas_acq_rel(&timed_wait->unit->permit, &suspended, PERMIT_NONE)) /* pairs with unit_take_suspended */
        return false;
    container_of(timed_wait, struct suspension, timed_wait)->given_up = true;
    return true;
}

/* 0 or ETIMEDOUT. */
INSIDE static int suspend(struct worker *worker, struct thrum_unit *self, uint64_t deadline) {
    struct suspension suspension = {.timed_wait = {.unit = self, .give_up = give_up}};
    uint32_t permit = PERMIT_NONE;
    unit_await(self, AWAITS_RESUME, NULL);
    /* This and the next pair with unit_take_suspended: what was written before the resume is seen. */
    if (cas_acq_rel(&self->permit, &permit, PERMIT_SUSPENDED)) {
        suspension.timed_wait.timer.deadline = cancel_point(worker, deadline);
        unit_block_timed(worker, &suspension.timed_wait);
    } else {
        unit_await_no_more(self);
        exchange_acq_rel(&self->permit, (uint32_t)PERMIT_NONE);
    }
    return suspension.given_up ? ETIMEDOUT : 0;
}

/* The deadline has passed: does not wait. */
static int take_permit(struct thrum_unit *self) {
    uint32_t given = PERMIT_GIVEN;
    return cas_acq_rel(&self->permit, &given, PERMIT_NONE) ? 0 : ETIMEDOUT; /* pairs as in suspend */
}

int thrum_suspend_until(uint64_t deadline) {
    struct worker *worker = enter();
    if (worker == NULL || !unit_may_wait(worker->current)) {
        leave();
        return EPERM;
    }
    struct thrum_unit *self = worker->current;
    self->escaped = true; /* the resumer has its handle */
    store_relaxed(&self->extras, true);
    bool is_over = deadline != TIMER_NEVER && deadline <= timer_now();
    int error = is_over ? take_permit(self) : suspend(worker, self, deadline);
    leave();
    (void)cancel_act(ETIMEDOUT);
    return error;
}

/* A unit that is cancelled but does not end at once continues as if it had been resumed. */
static ARCH_CALLED_BY_NAME uint64_t suspend_from(const void *unused, const void *unused_too,
                                                 const void *place) {
    (void)unused, (void)unused_too;
    unit_leaves_from(place);
    int error = thrum_suspend_until(TIMER_NEVER);
    return arch_return(error == ETIMEDOUT ? 0 : error, !unit_was_left_from(place));
}
ARCH_RETURN_BY_PLACE(int, thrum_suspend, (void), suspend_from, NULL, NULL)

bool unit_take_suspended(struct thrum_unit *unit) {
    uint32_t permit = load_relaxed(&unit->permit);
    for (;;) {
        store_relaxed(&unit->extras, true);
        uint32_t next = permit == PERMIT_SUSPENDED ? PERMIT_NONE : PERMIT_GIVEN;
        if (cas_acq_rel(&unit->permit, &permit, next)) /* also from GIVEN to GIVEN; pairs with suspend's */
            return next == PERMIT_NONE;
    }
}

int thrum_resume(thrum_t unit) {
    int error = handle_check(unit);
    if (error != 0)
        return error;
    struct worker *worker = enter();
    if (unit_take_suspended(unit))
        unit_wake(worker, unit);
    leave();
    return 0;
}

/* A unit that `self`'s worker or scheduler may run in its place. A pool's units are only for schedulers of that pool. */
static bool may_follow(const struct worker *worker, const struct thrum_unit *self,
                       const struct thrum_unit *unit) {
    if (worker_owes_from(worker, self) && unit->tcb == NULL)
        return false;
    switch (unit_place(unit)) {
    case UNIT_ULT: return true;
    case UNIT_BOUND: return unit_is_at_home(worker, unit);
    case UNIT_POOLED:
        return unit_place(self) == UNIT_POOLED && load_relaxed(&unit->pool) == load_relaxed(&self->pool);
    default: return false;
    }
}

bool unit_follow(struct worker *worker, const struct thrum_unit *self, struct thrum_unit *unit) {
    if (!may_follow(worker, self, unit)) {
        unit_wake(worker, unit);
        return false;
    }
    if (__builtin_expect(watch_on, 0))
        unit_wake_watched(worker, unit);
    unit_await_no_more(unit);
    return true;
}

INSIDE static bool can_be_followed(const struct worker *worker) {
    if (worker == NULL || is_in_region())
        return false;
    return load_relaxed(&worker->current->kind) < UNIT_TASKLET;
}

/* It was suspended, and runs next in the place of the caller's unit. */
INSIDE static void switch_to_taken(struct worker *worker, struct thrum_unit *unit) {
    struct thrum_unit *self = worker->current;
    if (!unit_follow(worker, self, unit))
        return;
    unit_announce(self);
    unit_requeue(worker, self, unit_place(self), false);
    switch_as(worker, self, unit, THRUM_TRACE_YIELD);
}

/* This makes no thread wait for ever: the target has suspended itself, and the others were searched for there. In a
 * region no unit switches to another. */
int thrum_switch_to(thrum_t unit) {
    int error = handle_check(unit);
    if (error != 0)
        return error;
    struct worker *worker = enter();
    if (unit_take_suspended(unit)) {
        if (can_be_followed(worker))
            switch_to_taken(worker, unit);
        else
            unit_wake(worker, unit);
    }
    leave();
    return 0;
}
