// SPDX-License-Identifier: Apache-2.0
/* Giving way. */
#include "sched/pool/pool.h"
#include "sched/worker.h"
#include "thrum/thrum.h"

bool unit_belongs_elsewhere(const struct worker *worker, const struct thrum_unit *self) {
    return unit_place(self) == UNIT_BOUND && load_relaxed(&self->bound) != worker;
}

/* While some are in the shared queue, which did not fit into a ring, others go behind them: else those that had got into
 * the ring would take turns, and the rest would wait. */
void unit_requeue(struct worker *worker, struct thrum_unit *self, enum unit_kind place, bool to_all) {
    if (place == UNIT_BOUND && unit_is_at_home(worker, self)) {
        fifo_push(&worker->inbox, self);
        if (load_relaxed(&worker->tick.state) == TICK_REST)
            tick_resume(worker); /* no other worker looks there, whichever is woken */
    } else if (place == UNIT_POOLED)
        pool_push_behind(load_relaxed(&self->pool), self); /* unit_place has acquired it */
    else if (place != UNIT_ULT)
        unit_wake_elsewhere(NULL, self);
    else if (to_all || !fifo_is_empty(&runtime.shared) || !yield_ring_push(&worker->yields, self))
        fifo_push(&runtime.shared, self);
    idle_wake_check(&runtime.idle);
}

/* A scheduler that runs on the worker's own loop has only others' units to yield to. A unit that must run on another
 * worker switches to the loop. */
struct thrum_unit *unit_pick_for_yield(struct worker *worker, struct thrum_unit *self, bool fairly) {
    struct thrum_unit *next = fairly ? pick_fairly(worker) : pick(worker);
    if (next == NULL && !worker->has_scheduler && !fifo_is_empty(&runtime.shared))
        next = fifo_pop(&runtime.shared);
    if (next != NULL)
        return next;
    bool leaves = (worker->has_scheduler && self != worker->loop) || unit_belongs_elsewhere(worker, self);
    return leaves ? worker->loop : NULL;
}

/* Not in a region: the count of these belongs to the kernel thread. */
INSIDE static __attribute__((noinline)) void yield_any(struct worker *worker) {
    if (worker != NULL && !is_in_region() && load_relaxed(&worker->current->kind) < UNIT_TASKLET) {
        struct thrum_unit *self = worker->current, *next = unit_pick_for_yield(worker, self, false);
        if (next != NULL) {
            unit_announce(self);
            unit_requeue(worker, self, unit_place(self), false);
            switch_as(worker, self, next, THRUM_TRACE_YIELD);
        }
    }
}

/* To `next`, which was picked, from a unit that may run on any worker. */
INSIDE static __attribute__((noinline)) void yield_to(struct worker *worker, struct thrum_unit *self,
                                                      struct thrum_unit *next) {
    unit_announce(self);
    unit_requeue(worker, self, unit_place(self), false);
    switch_as(worker, self, next, THRUM_TRACE_YIELD);
}

/* yield_any() for the usual case, which must be short: a unit that may run on any worker gives way to one whose registers are
 * saved, there is room in the ring, and none waits in the shared queue, behind which it would have to go. */
void thrum_yield(void) {
    struct worker *worker = enter();
    struct thrum_unit *self, *next = NULL;
    if (__builtin_expect(worker != NULL && load_relaxed(&(self = worker->current)->kind) == UNIT_ULT &&
                             !is_in_region(),
                         1))
        next = pick(worker);
    if (__builtin_expect(next == NULL, 0)) {
        yield_any(worker);
    } else if (__builtin_expect((intptr_t)load_relaxed(&next->sp) <= 0 || switch_is_slow(worker) ||
                                    !fifo_is_empty(&runtime.shared),
                                0)) {
        yield_to(worker, self, next);
    } else {
        unit_announce(self);
        if (__builtin_expect(!yield_ring_push(&worker->yields, self), 0)) {
            yield_to(worker, self, next);
        } else {
            idle_wake_check(&runtime.idle);
            worker->current = next;
            count_one(&worker->counters.switches);
            (void)arch_switch_and_return(&self->sp, next); /* with optimisation a jump */
            return;
        }
    }
    leave();
}
