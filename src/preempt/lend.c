// SPDX-License-Identifier: Apache-2.0
/* Lending: a preempted unit takes its thread control block along, and its worker goes on with a spare one.
 *
 * Spares may run out, and who makes new ones (donors.h) may wait for a lock of libc's that a preempted unit has. So nothing
 * waits for a spare, and whoever was preempted gets its turn:
 *
 *   - Each worker has one in reserve, besides that which it runs on. To change to a unit that has taken one along needs
 *     no more: the reserve is what it is switched to on, and is free again when that has its own back.
 *   - To change to a unit that has one for life needs one that stays behind it: for each such unit, but at most for each
 *     worker, one spare is kept back, which comes free again when one of the first kind goes on.
 *   - To change to any other needs one of the rest. Without, it waits in the queue.
 *   - To change to the loop, which may find whom it has not looked at, needs none of those; but then that runs nobody of
 *     the last kind before there is a reserve again (tcb_is_lacking).
 *
 * With kernel threads (carrier.h) it is the same, but that to change to a unit that has taken one along takes nothing at all,
 * and that to change to the primary, which has its own for life, takes the reserve that it will be left for when it waits. */
#include <sched.h>

#include "preempt/donors.h"
#include "preempt/preempt.h"
#include "sched/worker.h"

/* Is there what it takes to change to `next`? */
static bool may_change_to(struct worker *worker, const struct thrum_unit *next, struct tcb **spare) {
    bool took = load_relaxed(&next->took_tcb);
    *spare = NULL;
    if (worker->reserve == NULL && !(took && preempt.carries))
        return false;
    if (preempt.carries && next->tcb != NULL)
        return true;
    if (took)
        *spare = donors_take(0); /* else it will be given back at once */
    else if ((*spare = donors_take(next->tcb != NULL ? 0 : preempt_owners_at_once())) == NULL)
        return false;
    return true;
}

static struct thrum_unit *next_of_search(struct worker *worker) {
    struct thrum_unit *unit = fifo_pop(&worker->inbox);
    if (unit == NULL)
        unit = yield_ring_pop(&worker->yields);
    return unit != NULL ? unit : fifo_pop(&scheduler.shared);
}

/* The others go to the ends of their queues. */
static struct thrum_unit *search(struct worker *worker, struct tcb **spare) {
    uint32_t count =
        load_relaxed(&worker->inbox.count) + YIELD_RING_SIZE + load_relaxed(&scheduler.shared.count);
    struct thrum_unit *unit;
    for (uint32_t i = 0; i < count && (unit = next_of_search(worker)) != NULL; i++) {
        if (may_change_to(worker, unit, spare))
            return unit;
        if (unit_place(unit) == UNIT_BOUND)
            fifo_push(&worker->inbox, unit);
        else
            fifo_push(&scheduler.shared, unit);
    }
    return NULL;
}

struct thrum_unit *lend_whom(struct worker *worker, struct thrum_unit *next, struct tcb **spare) {
    if (worker->reserve == NULL)
        worker->reserve = donors_take(0);
    if (may_change_to(worker, next, spare))
        return next;
    if (next == worker->loop) {
        worker->is_short = worker->reserve != NULL;
        return worker->is_short ? next : NULL;
    }
    unit_wake(worker, next);
    return search(worker, spare);
}

bool tcb_is_lacking(struct worker *worker, const struct thrum_unit *unit) {
    if (worker->reserve == NULL)
        worker->reserve = donors_take(0);
    worker->is_short = worker->reserve == NULL;
    bool is_like_any = unit->tcb == NULL && load_relaxed(&unit->kind) != UNIT_TASKLET;
    if (worker->is_short && is_like_any) {
        donors_ask();
        sched_yield();
    }
    return worker->is_short && is_like_any;
}

void lend_take_along(struct worker *worker, struct thrum_unit *self, struct tcb *spare) {
    self->tcb = worker->tcb;
    store_relaxed(&self->took_tcb, true);
    worker->exceptions = &tcb_own_exceptions;
    worker->tcb = worker->reserve;
    worker->reserve = spare;
}

void lend_bring_back(struct worker *worker, struct thrum_unit *self) {
    struct tcb *free = worker->tcb;
    worker->tcb = self->tcb;
    worker->exceptions = worker->tcb->exceptions;
    self->tcb = NULL;
    store_relaxed(&self->took_tcb, false);
    if (worker->reserve == NULL)
        worker->reserve = free;
    else
        donors_give(free);
}
