// SPDX-License-Identifier: Apache-2.0
/* See preempt.h: life. */
#include "preempt/preempt.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>

#include "context/annotate.h"
#include "os/memory.h"
#include "os/signals.h"
#include "preempt/donors.h"
#include "sched/worker.h"
#include "thrum/thrum.h"

struct preempt preempt;

/* What a worker runs on, and its reserve. */
enum { BLOCKS_OF_A_WORKER = 2 };

static struct exception_globals *(*exceptions_here)(void);

bool preempt_lends(enum thrum_preempt_mode mode) {
    return mode == THRUM_PREEMPT_LEND;
}

/* Tools that watch each switch hold signals back, or keep records in thread-locals: nobody is preempted under them. */
int preempt_start(const struct preempt_settings *settings, uint32_t workers,
                  struct exception_globals *(*exceptions)(void)) {
    bool on = settings->mode != THRUM_PREEMPT_NONE && !annotate_on;
    preempt = (struct preempt){.settings = *settings,
                               .on = on,
                               .lends = on && preempt_lends(settings->mode),
                               .period = settings->slice};
    exceptions_here = exceptions;
    if (!preempt.on)
        return 0;
    tcb_is_cheap = arch_tcb_is_cheap();
    int error = handler_install();
    if (error == 0 && preempt.lends &&
        (error = donors_start(workers * BLOCKS_OF_A_WORKER + 1, exceptions)) != 0)
        handler_remove();
    preempt.on = error == 0;
    return error;
}

void preempt_close(void) {
    store_seq_cst(&preempt.closing, 1);
    while (load_seq_cst(&preempt.away) != 0) {
        thrum_yield();
        sched_yield();
    }
}

void preempt_stop(void) {
    if (!preempt.on)
        return;
    handler_remove();
    if (preempt.lends)
        donors_stop();
    preempt.on = false;
}

void preempt_fork_child(void) {
    if (preempt.lends)
        donors_fork_child();
    preempt.on = false;
}

/* --- workers ------------------------------------------------------------------------------------------ */

bool preempt_worker_ready(struct worker *worker) {
    if (!preempt.lends)
        return true;
    while (worker->tcb == NULL || worker->reserve == NULL) {
        enter();
        if (worker->tcb == NULL)
            worker->tcb = donors_take(0);
        if (worker->tcb != NULL && worker->reserve == NULL)
            worker->reserve = donors_take(0);
        leave();
        if (worker->reserve == NULL && donors_make(1) != 0)
            return false;
    }
    return true;
}

enum { STACK = 64 * 1024 };

/* False: there is no alternate stack, and none to be had. */
static bool own_stack(struct worker *worker) {
    stack_t now;
    if (sigaltstack(NULL, &now) == 0 && !(now.ss_flags & SS_DISABLE))
        return true;
    worker->tick.stack = memory_map(STACK, 0);
    stack_t ours = {.ss_sp = worker->tick.stack, .ss_size = STACK};
    return worker->tick.stack != NULL && sigaltstack(&ours, NULL) == 0;
}

static void forget_stack(struct worker *worker) {
    stack_t none = {.ss_flags = SS_DISABLE};
    if (worker->tick.stack == NULL)
        return;
    sigaltstack(&none, NULL);
    munmap(worker->tick.stack, STACK);
    worker->tick.stack = NULL;
}

/* What the primary unit runs on is its own for life. */
void preempt_worker_begin(struct worker *worker, struct thrum_unit *primary) {
    if (!preempt.on)
        return;
    sigbits mask = signals_mask_get(), tick = signals_bit(preempt.settings.signal);
    worker->tick.blocked = mask & tick;
    worker->tick.mask = worker->tick.other = mask & ~tick;
    signals_unblock(tick);
    if (preempt.lends) {
        enter();
        worker->home.base = arch_tcb();
        worker->home.exceptions = exceptions_here != NULL ? exceptions_here() : &worker->home.none;
        if (primary != NULL) {
            primary->tcb = &worker->home;
            fetch_add_relaxed(&preempt.owners, 1U);
            worker->exceptions = &tcb_own_exceptions;
        } else {
            tcb_install(worker, worker->tcb);
            worker->exceptions = worker->tcb->exceptions;
        }
        leave();
    }
    if (own_stack(worker))
        tick_thread_begin(worker);
    if (primary != NULL && load_relaxed(&worker->tick.state) == TICK_OFF)
        tick_begin(worker);
}

void preempt_worker_end(struct worker *worker) {
    if (!preempt.on)
        return;
    tick_thread_end(worker);
    forget_stack(worker);
    if (worker->tick.blocked)
        signals_block(signals_bit(preempt.settings.signal));
    if (!preempt.lends)
        return;
    enter();
    if (arch_tcb() != worker->home.base)
        tcb_install(worker, &worker->home);
    donors_give(worker->tcb);
    if (worker->reserve != NULL)
        donors_give(worker->reserve);
    worker->tcb = worker->reserve = NULL;
    leave();
}
