// SPDX-License-Identifier: Apache-2.0
/* Lending: a preempted unit keeps its thread control block, and its worker continues with a spare one.
 *
 * Spares may run out, and the thread that makes new ones (provider.h) may wait for a lock of libc's that a preempted
 * unit holds. So nothing waits for a spare, and every preempted unit gets its turn:
 *
 *   - Each worker has one in reserve, besides the one that it runs on. Changing to a unit that keeps a block needs no more:
 *     the worker switches to the reserve, and has it back when that unit has its own back.
 *   - Changing to a unit that has one for life needs one that stays behind: for each such unit, but at most for each
 *     worker, one spare is kept back, which is free again when a unit of the first kind resumes.
 *   - Changing to any other unit needs one of the rest. Without, it waits in the queue. From a unit that has one for life it
 *     takes none; but that one's must be there, or nothing could change back to it.
 *     From it, when it waits or yields, the worker runs one of the first kind if there are no more spares than that. Nor does it
 *     call a child then, switch to a unit without a block, or end before such a joiner or successor: that could be preempted for
 *     units of the first kind alone. These would take turns, while all of them wait for a lock that a unit with a block for
 *     life holds (worker_owes_from).
 *   - Changing to the loop, which may find a unit that was not examined, needs none of those; but then that loop runs no unit
 *     of the last kind before there is a reserve again (tcb_instead). Nor does a unit with a block for life that it runs
 *     meanwhile switch to one: without a reserve that could not be preempted at all.
 *
 * With kernel threads (carrier.h) it is the same, with two exceptions. Changing to a unit that keeps its kernel
 * thread takes nothing at all. Changing to the primary, which has its own for life, takes the reserve that the worker
 * needs when the primary waits.
 *
 * Modelled in tests/model/lend.pml. */
#include <sched.h>
#include <stddef.h>

#include "base/assert.h"
#include "os/rseq.h"
#include "preempt/mode.h"
#include "preempt/preempt.h"
#include "preempt/requests.h"
#include "preempt/spares.h"
#include "sched/pool/scheduler.h"
#include "sched/pool/stacked.h"
#include "sched/preempted.h"
#include "sched/worker.h"

/* Are there the spares that a change from the present unit to `next` takes? */
INSIDE static bool may_change_to(struct worker *worker, const struct thrum_unit *next, struct tcb **spare) {
    bool took = load_relaxed(&next->took_tcb), to_owner = next->tcb != NULL && !took;
    bool from_owner = worker->current->tcb != NULL;
    uint32_t keep = to_owner ? 0 : preempt_owners_at_once() - from_owner;
    *spare = NULL;
    if (preempt.carries) {
        if (took || (to_owner && worker->reserve != NULL))
            return true;
        return worker->reserve != NULL && (*spare = spares_take(keep)) != NULL;
    }
    if (from_owner && next->tcb != NULL)
        return true;
    if (worker->reserve == NULL)
        return false;
    *spare = spares_take(took ? 0 : keep);
    bool may = took || *spare != NULL;
    if (from_owner && *spare != NULL) {
        spares_give(*spare); /* it was only to be there */
        *spare = NULL;
    }
    return may;
}

/* The primary's worker needs one to go back to that. */
INSIDE static struct tcb *new_reserve(const struct worker *worker) {
    bool is_primarys = preempt.carries && load_relaxed(&runtime.primary.bound) == worker;
    return spares_take(is_primarys ? 0 : preempt_owners_at_once());
}

INSIDE static struct thrum_unit *next_of_search(struct worker *worker) {
    struct thrum_unit *unit = fifo_pop(&worker->inbox);
    if (unit == NULL)
        unit = yield_ring_pop(&worker->yields);
    return unit != NULL ? unit : fifo_pop(&runtime.shared);
}

static bool is_at_home(const struct worker *worker, const struct thrum_unit *unit) {
    return unit_place(unit) == UNIT_BOUND && load_relaxed(&unit->bound) == worker;
}

static void pass_over(struct thrum_unit **passed, struct thrum_unit *unit) {
    unit->next = *passed;
    *passed = unit;
}

/* It may have been moved meanwhile. */
INSIDE static void put_back(struct worker *worker, struct thrum_unit *unit) {
    if (is_at_home(worker, unit))
        fifo_push_front(&worker->inbox, unit);
    else if (unit_place(unit) == UNIT_ULT)
        fifo_push_front(&runtime.shared, unit);
    else
        unit_wake_elsewhere(NULL, unit);
}

/* A unit that is passed over stays first. At the end of the queue it would be behind units that keep a block, and
 * would come to the front again and again when there is no spare: never, while those take turns. `passed`: a unit
 * that is passed over already, or NULL. Units far behind go to the end, so that the next ticks do not examine the
 * same ones again. */
INSIDE static struct thrum_unit *search(struct worker *worker, struct thrum_unit *passed,
                                        struct tcb **spare) {
    enum { FAR = 4096 };
    uint32_t count =
        load_relaxed(&worker->inbox.count) + YIELD_RING_SIZE + load_relaxed(&runtime.shared.count);
    struct thrum_unit *unit, *found = NULL;
    for (uint32_t i = 0; found == NULL && i < count && (unit = next_of_search(worker)) != NULL; i++) {
        if (may_change_to(worker, unit, spare))
            found = unit;
        else if (i < FAR && (is_at_home(worker, unit) || unit_place(unit) == UNIT_ULT))
            pass_over(&passed, unit);
        else
            unit_wake_elsewhere(NULL, unit);
    }
    bool some_are_back = passed != NULL;
    while ((unit = passed) != NULL) {
        passed = unit->next;
        put_back(worker, unit);
    }
    if (some_are_back)
        idle_wake_check(&runtime.idle); /* a worker that parked meanwhile did not see them */
    return found;
}

/* Changing to a unit with a block for life has taken the spare that was kept back for it, or will take the reserve, or
 * is from a loop that has none. If a unit that was never preempted ran after it and were preempted in turn, none would become
 * free, and the next such change would wait until another unit ends. */
static struct thrum_unit *note_debt(struct worker *worker, struct thrum_unit *next) {
    bool to_owner = next != NULL && next->tcb != NULL && !load_relaxed(&next->took_tcb);
    if (to_owner && spares_are_scarce()) {
        worker->owes = true;
        worker->until_slow = 1;
    }
    return next;
}

struct thrum_unit *lend_choose_next(struct worker *worker, struct thrum_unit *next, struct tcb **spare) {
    if (!preempt_is_armed()) {
        if (next != worker->loop)
            unit_wake(worker, next);
        provider_ask_to_arm();
        return NULL;
    }
    bool is_free = preempt.lends && worker->current->tcb != NULL; /* its worker's own block lies idle */
    if (worker->reserve == NULL)
        worker->reserve = new_reserve(worker);
    if (may_change_to(worker, next, spare))
        return note_debt(worker, next);
    if (next == worker->loop) {
        worker->is_short = true;
        return worker->reserve != NULL || is_free ? next : NULL;
    }
    struct thrum_unit *passed = NULL;
    if (is_at_home(worker, next) || unit_place(next) == UNIT_ULT)
        pass_over(&passed, next);
    else
        unit_wake(worker, next);
    return note_debt(worker, search(worker, passed, spare));
}

/* The order of a scheduler might choose the same unit again and again: so the scheduler does not choose here. */
struct thrum_unit *tcb_instead(struct worker *worker, struct thrum_unit *unit) {
    if (worker->reserve == NULL)
        worker->reserve = new_reserve(worker);
    worker->is_short = worker->reserve == NULL;
    worker->owes = false;
    if (!worker->is_short || load_relaxed(&unit->kind) == UNIT_TASKLET)
        return unit;
    if (unit->tcb != NULL)
        return note_debt(worker, unit);
    provider_ask();
    unit_wake_elsewhere(NULL, unit);
    struct thrum_unit *other = preempted_take(worker, worker, stacked_or_own(worker));
    if (other != NULL && other->tcb != NULL)
        return note_debt(worker, other);
    if (other != NULL)
        unit_wake_elsewhere(NULL, other);
    sched_yield();
    return NULL;
}

static void take_tcb(struct worker *worker, struct thrum_unit *self, struct tcb *spare) {
    thrum_assert(self->tcb == NULL && worker->reserve != NULL && worker->reserve != worker->tcb &&
                 spare != worker->reserve);
    self->tcb = worker->tcb;
    store_relaxed(&self->took_tcb, true);
    worker->exceptions = &tcb_unit_has_one;
    worker->tcb = worker->reserve;
    worker->reserve = spare;
}

INSIDE static void return_tcb(struct worker *worker, struct thrum_unit *self) {
    struct tcb *free = worker->tcb;
    thrum_assert(self->tcb != NULL && self->tcb != free && free != worker->reserve);
    worker->tcb = self->tcb;
    worker->exceptions = worker->tcb->exceptions;
    self->tcb = NULL;
    store_relaxed(&self->took_tcb, false);
    if (worker->reserve == NULL)
        worker->reserve = free;
    else
        spares_give(free);
}

/* --- a runtime of this mode, or of own-tls ------------------------------------------------------------ */

static int start(void (*is_over)(struct worker *worker)) {
    (void)is_over;
    return libc_signals_wrap();
}

/* On a lent block it continues as the donor, as far as libc is concerned, which unmaps the worker's home block sooner
 * or later; the kernel would still write the number of the CPU there. */
static void fork_child(const struct worker *worker) {
    if (worker != NULL && worker->home.base != 0 && worker->home.base != arch_tcb())
        rseq_give_up(worker->home.base);
    primary_fork_child();
    libc_signals_fork_child();
}

/* What the primary unit runs on is its own for life. */
INSIDE static void worker_begin(struct worker *worker, struct thrum_unit *primary) {
    if (primary == NULL) {
        tcb_install(worker, worker->tcb);
        worker->exceptions = worker->tcb->exceptions;
        return;
    }
    libc_signals_follow(true);
    primary_begin(worker->home.base);
    primary->tcb = &worker->home;
    fetch_add_relaxed(&preempt.owners, 1U);
    worker->exceptions = &tcb_unit_has_one;
}

static void worker_end(struct worker *worker) {
    if (worker->current == &runtime.primary) {
        libc_signals_unfollow();
        primary_end();
    }
}

const struct preempt_mode mode_lend = {
    .start = start,
    .stop = libc_signals_unwrap,
    .fork_child = fork_child,
    .worker_begin = worker_begin,
    .worker_end = worker_end,
    .choose_next = lend_choose_next,
    .take_tcb = take_tcb,
    .change = mode_change_here,
    .return_tcb = return_tcb,
    .moves = true,
};
