// SPDX-License-Identifier: Apache-2.0
/* See scheduler.h: a worker runs the function of a scheduler, and what that function calls. */
#include <errno.h>

#include "base/assert.h"
#include "base/misuse.h"
#include "sched/pool/pool.h"
#include "sched/pool/scheduler.h"
#include "sched/pool/stacked.h"
#include "sched/preempted.h"
#include "sched/worker.h"

/* What is in its pools is left to other workers. */
INSIDE static void pass_on(const struct thrum_sched *sched) {
    for (unsigned i = 0; i < sched->count; i++)
        if (!pool_is_empty(sched->pools[i]))
            scheduler_wake_for(sched->pools[i]);
}

INSIDE static void pass_on_the_rest(struct worker *worker) {
    if (__builtin_expect(worker->woken_for == NULL, 1))
        return;
    pass_on(worker->woken_for);
    worker->woken_for = NULL;
}

/* --- what scheduler functions call -------------------------------------------------------------------- */

thrum_pool_t thrum_sched_pool(thrum_sched_t sched, unsigned i) {
    if (is_null(sched))
        return NULL;
    return i < sched->count ? sched->pools[i] : NULL;
}

bool thrum_sched_stopping(thrum_sched_t sched) {
    if (is_null(sched))
        misuse_null(__func__);
    const struct worker *worker = enter();
    bool stopping = load_acquire(&sched->stopping) || load_acquire(&runtime.stopping) ||
                    (worker->sched == sched && load_acquire(&worker->wanted_sched) != sched);
    leave();
    return stopping;
}

/* A unit chosen under a scheduler comes back to it: pick() gives nothing meanwhile. The worker may have come to rest
 * while the scheduler's function was alone: a tick knows nothing of the units that the function holds, or of the
 * pools of a stacked scheduler. Nor does a unit that a stacked one chooses have a place in the order of the worker's
 * own scheduler, for which it would be interrupted at each turn. */
INSIDE static void run(struct worker *worker, struct thrum_unit *unit, bool in_order) {
    bool had_scheduler = worker->has_scheduler;
    worker->has_scheduler = true;
    worker->in_order = in_order && ticks_are_possible && !is_stacked(worker);
    worker->until_slow = 1;
    if (load_relaxed(&worker->tick.state) == TICK_REST)
        tick_resume(worker);
    worker_run(worker, unit);
    worker = worker_here();
    worker->has_scheduler = had_scheduler;
    worker->in_order = false;
}

/* A unit that waits in the kernel for a lock may precede the lock holder in the order of the scheduler, again and
 * again. */
INSIDE static void run_lock_holder(struct worker *worker) {
    worker->tick.kernel_wait.waited = false;
    struct thrum_unit *unit = preempted_take(worker, worker, stacked_or_own(worker));
    if (unit != NULL)
        run(worker, unit, false); /* those that want the lock may go before */
}

/* One after another, with none in hand meanwhile: the unit that runs might wait for a lock that the other holds. In a
 * region no unit runs. */
void thrum_run(thrum_t unit) {
    if (is_null(unit))
        misuse_null(__func__);
    struct worker *worker = enter();
    if (worker == NULL || (is_stacked(worker) && stacked_of(worker->current) == NULL))
        misuse_end("thrum_run: the caller is no scheduler's function (thrum_sched_create_user)");
    if (is_in_region()) {
        unit_wake(worker, unit);
        leave();
        return;
    }
    pass_on_the_rest(worker);
    run(worker, unit, true);
    struct thrum_unit *bound = fifo_pop(&worker_here()->inbox); /* they run nowhere else */
    if (bound != NULL)
        run(worker_here(), bound, false);
    if (__builtin_expect(worker_here()->tick.kernel_wait.waited, 0))
        run_lock_holder(worker_here());
    bool give_way = is_stacked(worker_here()); /* now and then */
    leave();
    if (give_way)
        thrum_yield();
}

void thrum_sched_idle(thrum_sched_t sched) {
    if (is_null(sched))
        misuse_null(__func__);
    struct worker *worker = enter();
    if (is_in_region()) {
        leave();
        return;
    }
    if (is_stacked(worker)) {
        stacked_wait(worker, sched);
        return;
    }
    struct thrum_unit *unit = worker_search(worker, sched);
    if (unit != NULL || thrum_sched_stopping(sched))
        pass_on(sched);
    else
        worker->woken_for = sched; /* it is about to take one: after that */
    if (unit != NULL)
        run(worker, unit, true);
    worker_wants_ticks(worker_here());
    leave();
}

/* --- by a worker ------------------------------------------------------------------------------------- */

/* A scheduler that is wanted but not run yet is released by the thread that wants another; a running one by the
 * worker. If it is still wanted when its function returns it was stopped, or the runtime stops. */
void scheduler_run(struct worker *worker) {
    enter();
    lock_acquire(&worker->sched_lock);
    struct thrum_sched *sched = worker->wanted_sched;
    store_relaxed(&worker->sched, sched);
    lock_release(&worker->sched_lock);
    leave();
    if (sched == NULL)
        return;
    worker->has_scheduler = true;
    worker->until_slow = 1;
    worker->tick.kernel_wait.waited = false;
    tick_can_preempt(THRUM_PREEMPT_DEFAULT, load_relaxed(&sched->slice));
    enter();
    tick_resume(worker); /* the one before may have left it at rest */
    worker_wants_ticks(worker);
    leave();
    sched->run(sched, sched->data);
    enter();
    worker->has_scheduler = false;
    pass_on_the_rest(worker);
    lock_acquire(&worker->sched_lock);
    store_relaxed(&worker->sched, NULL);
    if (worker->wanted_sched == sched)
        store_release(&worker->wanted_sched, NULL);
    scheduler_release(sched);
    lock_release(&worker->sched_lock);
    leave();
}

int thrum_worker_set_sched(unsigned number, thrum_sched_t sched) {
    if (number >= load_acquire(&runtime.count))
        return EINVAL;
    if (sched != NULL && !scheduler_claim(sched))
        return EBUSY;
    struct worker *worker = runtime.workers[number];
    enter();
    lock_acquire(&worker->sched_lock);
    bool leaves = worker_is_leaving(worker);
    if (!leaves)
        scheduler_want_locked(worker, sched);
    else if (sched != NULL)
        scheduler_release(sched);
    lock_release(&worker->sched_lock);
    idle_wake_this(&runtime.idle, &worker->parking);
    leave();
    return leaves ? EINVAL : 0;
}
