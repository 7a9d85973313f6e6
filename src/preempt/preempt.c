// SPDX-License-Identifier: Apache-2.0
/* See preempt.h: life. */
#include "preempt/preempt.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>

#include "context/annotate.h"
#include "os/alternate.h"
#include "os/lock.h"
#include "os/signals.h"
#include "preempt/carrier.h"
#include "preempt/frame_stack.h"
#include "preempt/mode.h"
#include "preempt/monitor.h"
#include "preempt/own_stack.h"
#include "preempt/provider.h"
#include "preempt/spares.h"
#include "sched/upward.h"
#include "sched/worker.h"
#include "thrum/thrum.h"

/* What is kept back for the primary, and two that may be lent at once. */
enum { OTHER_BLOCKS = 1 + 2 };

static struct lock reserves; /* of other workers, against their end */

static int start_spares(uint32_t count, const struct preempt_callbacks *callbacks) {
    int error = spares_start(count);
    if (error == 0 && (error = provider_start(callbacks->arm, callbacks->add_relief)) != 0)
        spares_stop();
    return error;
}

static void stop_spares(void) {
    provider_close();
    spares_stop();
}

/* A worker runs on one; once armed it has a reserve, and there is the relief worker. */
static int start_keeping(const struct preempt_callbacks *callbacks) {
    uint32_t workers = callbacks->workers;
    uint32_t count = preempt_is_armed() ? 2 * (workers + 1) + OTHER_BLOCKS : workers;
    int error = start_spares(count, callbacks);
    if (error == 0 && (error = mode_of_runtime()->start(callbacks->is_over)) != 0)
        stop_spares();
    if (error == 0 && preempt_is_armed() && (error = monitor_start()) != 0) {
        mode_of_runtime()->stop();
        stop_spares();
    }
    return error;
}

/* Under a tool that rules preemption out, threads yield at safepoints. */
int preempt_start(const struct preempt_settings *settings, const struct preempt_callbacks *callbacks) {
    bool wanted = settings->mode != THRUM_PREEMPT_NONE, on = wanted && !annotate_holds_signals;
    preempt = (struct preempt){.settings = *settings,
                               .on = on,
                               .by_safepoints = wanted && !on,
                               .lends = on && preempt_lends(settings->mode),
                               .carries = on && preempt_carries(settings->mode),
                               .armed = on && !settings->is_lazy,
                               .period = settings->slice,
                               .exceptions_here = callbacks->exceptions_here,
                               .place = callbacks->place};
    if (!preempt.on)
        return 0;
    tcb_is_cheap = arch_tcb_is_cheap();
    relief_start();
    int error = settings->is_lazy && handler_would_intrude() ? EAGAIN : handler_install();
    if (error == 0 && preempt_has_spares() && (error = start_keeping(callbacks)) != 0) {
        monitor_stop(); /* the first carriers may have asked for it */
        handler_remove();
    }
    preempt.on = error == 0;
    own_is_possible = preempt.on && preempt.lends;
    own_is_default = own_is_possible && preempt.settings.mode == THRUM_PREEMPT_OWN_TLS;
    ticks_are_possible = preempt.on;
    return error;
}

void preempt_close(void) {
    do {
        /* This and the next pair with preempt_enter, as the other two do. */
        store_seq_cst(&preempt.closing, PREEMPT_CLOSING);
        while (load_seq_cst(&preempt.away) != 0) {
            thrum_yield();
            sched_yield();
        }
        store_seq_cst(&preempt.closing, PREEMPT_CLOSED); /* this and the next pair with preempt_enter */
    } while (load_seq_cst(&preempt.away) != 0);          /* the relief's worker preempted meanwhile */
    preempt_make_no_more();
    if (preempt_relieves())
        relief_close(load_relaxed(&runtime.primary.bound));
}

void preempt_make_no_more(void) {
    provider_close();
}

void preempt_workers_made(void) {
    if (preempt.on)
        monitor_look_again();
}

void preempt_workers_over(void) {
    monitor_stop();
}

void preempt_stop(void) {
    if (!preempt.on)
        return;
    monitor_stop();
    if (preempt_has_spares()) {
        mode_of_runtime()->stop();
        stop_spares();
    }
    handler_remove();
    frame_stacks_stop();
    own_is_possible = own_is_default = ticks_are_possible = false;
    preempt.on = false;
}

void preempt_fork_child(const struct worker *worker) {
    if (mode_of_runtime()->fork_child != NULL)
        mode_of_runtime()->fork_child(worker);
    spares_fork_child();
    provider_fork_child();
    if (worker != NULL)
        tick_slack_back(&worker->tick);
    frame_stacks_fork_child();
    lock_reset(&reserves);
    monitor_fork_child();
    own_is_possible = own_is_default = ticks_are_possible = false;
    preempt.on = false;
}

/* --- workers ------------------------------------------------------------------------------------------ */

bool preempt_worker_ready(struct worker *worker) {
    if (!preempt_has_spares())
        return true;
    worker->as_new.first = NULL; /* a slot of a parent's, in a child of fork */
    worker->as_new.count = 0;
    bool armed = preempt_is_armed();
    uint32_t keep = armed ? preempt_owners_at_once() : 0;
    while (worker->tcb == NULL || (armed && worker->reserve == NULL)) {
        enter();
        if (worker->tcb == NULL)
            worker->tcb = spares_take(keep);
        if (armed && worker->tcb != NULL && worker->reserve == NULL)
            worker->reserve = spares_take(keep);
        leave();
        if ((worker->tcb == NULL || (armed && worker->reserve == NULL)) && spares_make(keep + 1) != 0)
            return false;
    }
    return true;
}

/* With the relief worker, which has two. */
int preempt_make_spares(uint32_t workers) {
    return spares_make(workers + 2 + OTHER_BLOCKS + preempt_owners_at_once());
}

/* One that has ended meanwhile has no block. */
void preempt_give_reserve(struct worker *worker) {
    enter();
    lock_acquire(&reserves);
    if (worker->tcb != NULL && worker->reserve == NULL)
        worker->reserve = spares_take(0);
    lock_release(&reserves);
    leave();
}

void preempt_armed(void) {
    store_release(&preempt.armed, 1);
}

INSIDE static void give_back(struct worker *worker) {
    lock_acquire(&reserves);
    if (worker->tcb != NULL)
        spares_give(worker->tcb);
    if (worker->reserve != NULL)
        spares_give(worker->reserve);
    worker->tcb = worker->reserve = NULL;
    lock_release(&reserves);
    own_worker_ends(worker);
}

void preempt_worker_unready(struct worker *worker) {
    enter();
    give_back(worker);
    leave();
}

static bool begin_ticks(struct worker *worker) {
    if (!alternate_stack_begin(&worker->tick.thread.stack))
        return false;
    if (tick_thread_begin(worker))
        return true;
    alternate_stack_end(worker->tick.thread.stack);
    worker->tick.thread.stack = NULL;
    return false;
}

bool preempt_worker_begin(struct worker *worker, struct thrum_unit *primary) {
    worker->tick.wanted = preempt.by_safepoints;
    if (!preempt.on)
        return true;
    if (!begin_ticks(worker))
        return false;
    sigbits mask = signals_mask_get(), tick = signals_bit(preempt.settings.signal);
    worker->tick.thread.blocked = mask & tick;
    worker->tick.thread.mask = worker->tick.thread.other = mask & ~tick;
    signals_unblock(tick);
    if (primary != NULL)
        own_stack_find_primary();
    if (preempt_has_spares()) {
        enter();
        worker->home.base = arch_tcb();
        worker->home.exceptions =
            preempt.exceptions_here != NULL ? preempt.exceptions_here() : &worker->home.none;
        mode_of_runtime()->worker_begin(worker, primary);
        leave();
    }
    if (primary != NULL) {
        enter();
        tick_rest(worker); /* it is alone so far */
        leave();
    }
    return true;
}

void preempt_worker_end(struct worker *worker) {
    if (!preempt.on)
        return;
    tick_thread_end(worker);
    alternate_stack_end(worker->tick.thread.stack);
    worker->tick.thread.stack = NULL;
    if (worker->tick.thread.blocked)
        signals_block(signals_bit(preempt.settings.signal));
    if (!preempt_has_spares())
        return;
    enter();
    mode_of_runtime()->worker_end(worker);
    if (arch_tcb() != worker->home.base)
        tcb_install(worker, &worker->home);
    store_relaxed(&worker->home.base, 0); /* it is at home; the slot's next kernel thread has another */
    give_back(worker);
    leave();
}

/* The signal of ticks is let in, and ignored (handler.c): the unit brings the masks of workers, and they get its. */
void preempt_solo_begin(struct worker *worker) {
    if (preempt.on)
        signals_unblock(signals_bit(preempt.settings.signal));
    worker->tick.thread.mask = worker->tick.thread.other = signals_mask_get();
    if (!preempt_has_spares())
        return;
    worker->home.base = arch_tcb();
    worker->home.exceptions =
        preempt.exceptions_here != NULL ? preempt.exceptions_here() : &worker->home.none;
    worker->tcb = &worker->home;
    worker->exceptions = worker->tcb->exceptions;
}

void preempt_solo_end(struct worker *worker) {
    own_worker_ends(worker);
    worker->tcb = NULL;
    store_relaxed(&worker->home.base, 0);
}

void preempt_worker_start(struct worker *worker) {
    carrier_start_worker(worker);
}

_Noreturn void preempt_worker_stop(struct worker *worker) {
    carrier_end_worker(worker);
}
