// SPDX-License-Identifier: Apache-2.0
/* See give_way.h. */
#include "preempt/give_way.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "base/misuse.h"
#include "preempt/mode.h"
#include "preempt/own_stack.h"
#include "preempt/requests.h"
#include "preempt/watch.h"
#include "sched/pool/scheduler.h"
#include "thrum/thrum.h"

/* --- whether, and to which ---------------------------------------------------------------------------- */

/* Its own, or that of the scheduler that runs it. */
static uint64_t slice_of(const struct worker *worker, const struct thrum_unit *unit) {
    uint32_t slice = unit->slice != 0 ? unit->slice : worker->loop->slice;
    if (slice == 0 && worker->sched != NULL)
        slice = load_relaxed(&worker->sched->slice);
    return slice != 0 ? slice * UINT64_C(1000) : preempt.settings.slice;
}

/* The relief worker preempts until preemption has closed: what it runs may wait for a lock that a unit holds which is
 * still away, and so may all other workers. */
static bool is_closed_to(const struct worker *worker) {
    uint32_t closing = load_seq_cst(&preempt.closing); /* pairs with preempt_close: see preempt_enter */
    return closing == PREEMPT_CLOSED || (closing == PREEMPT_CLOSING && !worker_relieves(worker));
}

/* True: one of its own has fired. */
INSIDE static bool look_at_timers(struct worker *worker) {
    uint64_t next = load_relaxed(&worker->timers.next);
    if (!timers_are_empty(&worker->timers) || load_relaxed(&runtime.orphans))
        timers_look(worker);
    return load_relaxed(&worker->timers.next) != next;
}

/* In its loop. The function of a scheduler may wait for a lock that a preempted unit holds: a thread that enqueues
 * that unit again wakes resting workers. */
INSIDE static void look_at_loop(struct worker *worker) {
    if (worker->sched == NULL) {
        tick_off(worker);
        return;
    }
    look_at_timers(worker); /* a resting worker gets its next tick when a timer is due */
    if (!tick_holds_others_up(worker))
        tick_rest(worker);
}

struct thrum_unit *preempt_pick_successor(struct worker *worker) {
    struct thrum_unit *self = worker->current, *next = NULL;
    count_one(&worker->counters.ticks);
    if (is_closed_to(worker))
        return NULL;
    if (!unit_is_thread(self)) {
        if (load_relaxed(&self->kind) == UNIT_LOOP)
            look_at_loop(worker);
        return NULL;
    }
    bool has_woken = look_at_timers(worker); /* first: a unit whose sleep ends may be urgent */
    bool gives_way = tick_gives_way(worker, has_woken);
    bool is_over = tick_ends_slice(worker, self, slice_of(worker, self));
    if (!is_over && !gives_way)
        return NULL;
    bool others = tick_has_others(worker) || unit_belongs_elsewhere(worker, self);
    if (others && preempt_mode_of(self) == THRUM_PREEMPT_NONE) {
        store_relaxed(&worker->tick.wanted, true);
        return NULL;
    }
    if (!is_over && (next = pick_preferred(worker)) == NULL)
        return NULL;
    if (others && next == NULL)
        next = unit_pick_for_yield(worker, self, true);
    if (next == NULL && !tick_has_others_behind(worker))
        tick_rest(worker);
    return next;
}

/* --- how ---------------------------------------------------------------------------------------------- */

/* The kernel thread may not be the one that took the signal, and others have run on it since: the frame is given its
 * mask and alternate stack. */
static void make_frame_ours(const struct thrum_unit *self, ucontext_t *context) {
    sigbits mask = (signals_mask_get() & ~signals_bit(preempt.settings.signal)) | preempt_own_block(self);
    memcpy(&context->uc_sigmask, &mask, sizeof mask);
    sigaltstack(NULL, &context->uc_stack);
}

static uint32_t *away(bool counts) {
    return counts ? &preempt.away : &preempt.away_in_pools;
}

static void preempt_exit(bool counts) {
    /* Pairs with preempt_close and watch_look: what the unit did is seen. */
    fetch_sub_release(away(counts), 1U);
}

/* Either the primary, which closes, sees one more away, or this sees that it does. False: `next` is put back. */
INSIDE static bool preempt_enter(struct worker *worker, struct thrum_unit *next, bool counts) {
    fetch_add_seq_cst(away(counts), 1U); /* pairs with preempt_close, and watch_look */
    watch_tell();
    if (!is_closed_to(worker))
        return true;
    preempt_exit(counts);
    if (next != worker->loop)
        unit_wake(worker, next);
    return false;
}

/* Its own, or its worker's. */
static bool runs_on_its_block(const struct worker *worker, const struct thrum_unit *self) {
    const struct tcb *tcb = self->tcb != NULL ? self->tcb : worker->tcb;
    return !preempt_has_spares() || arch_tcb() == tcb->base;
}

bool preempt_for(struct worker *worker, struct thrum_unit *self, struct thrum_unit *next,
                 ucontext_t *context) {
    const struct preempt_mode *mode = mode_of(self);
    enum unit_kind place = unit_place(self); /* once: it may be moved meanwhile */
    bool counts = place != UNIT_POOLED;      /* there may be no scheduler left for its pool */
    struct tcb *spare = NULL;
    thrum_assert(regions_open() == 1 && unit_is_thread(self) && self != worker->loop &&
                 runs_on_its_block(worker, self));
    if (!preempt_enter(worker, next, counts))
        return false;
    if (mode->choose_next != NULL && (next = mode->choose_next(worker, next, &spare)) == NULL) {
        preempt_exit(counts);
        store_release(&worker->tick.starved, 1); /* pairs, by provider_ask's fence, with interrupt_starved */
        provider_ask();
        return false;
    }
    if (mode->take_tcb != NULL)
        mode->take_tcb(worker, self, spare);
    count_one(&worker->counters.preemptions);
    worker->tick.last.changed = timer_now();
    mode->change(worker, self, place, next, spare, context);
    preempt_exit(counts);
    if (mode->return_tcb != NULL)
        mode->return_tcb(worker_here(), self);
    thrum_assert(worker_here()->current == self && runs_on_its_block(worker_here(), self));
    if (context != NULL && mode->moves)
        make_frame_ours(self, context);
    return true;
}

/* --- by the unit itself ------------------------------------------------------------------------------- */

/* Where there are no ticks. */
static bool slice_is_over_by_clock(struct worker *worker) {
    const struct thrum_unit *self = worker->current;
    uint64_t now = timer_now(), switches = load_relaxed(&worker->counters.switches);
    bool same = worker->tick.last.switches == switches;
    bool over = now - worker->tick.last.changed >= slice_of(worker, self);
    if (!same || over) {
        worker->tick.last.switches = switches;
        worker->tick.last.changed = now;
    }
    return same && over;
}

INSIDE static void yield_to(struct worker *worker, struct thrum_unit *self, struct thrum_unit *next) {
    unit_announce(self);
    mode_put_back(worker, self, unit_place(self));
    switch_as(worker, self, next, THRUM_TRACE_YIELD);
}

void thrum_safepoint(void) {
    struct worker *worker = worker_here();
    if (worker == NULL || __builtin_expect(!load_relaxed(&worker->tick.wanted), 1) || regions_open() != 0)
        return;
    worker = enter();
    if (!preempt.by_safepoints)
        store_relaxed(&worker->tick.wanted, false);
    else if (!slice_is_over_by_clock(worker)) {
        leave();
        return;
    }
    struct thrum_unit *self = worker->current;
    bool fairly = !worker_owes_from(worker, self);
    struct thrum_unit *next = unit_is_thread(self) ? unit_pick_for_yield(worker, self, fairly) : NULL;
    if (next != NULL)
        yield_to(worker, self, next);
    leave();
}

/* The program's own regions, which begin and end in different functions: hence unchecked. On an external kernel thread there
 * is nothing that they would hold off. */
void thrum_nopreempt_begin(void) {
    ARCH_TLS_INCREMENT(thrum_nopreempt);
}

INSIDE_UNCHECKED void thrum_nopreempt_end(void) {
    if (__builtin_expect(regions_open() == 0, 0))
        misuse_end("thrum_nopreempt_end: no thrum_nopreempt_begin is open");
    leave();
}
