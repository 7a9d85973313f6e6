// SPDX-License-Identifier: Apache-2.0
/* See worker.h, life of a worker: it searches, runs what it finds, and parks. */
#include "sched/worker.h"

#include "os/ticks.h"
#include "os/topology.h"
#include "sched/pool/order.h"
#include "sched/pool/pool.h"
#include "sched/pool/scheduler.h"
#include "sched/time/timekeeper.h"
#include "sched/trim.h"

enum { SEARCH_US = 100, RELAX = 32 };

/* The caller of worker_search has something else to do; the loop itself has, with `sched` NULL. */
static bool is_called_away(const struct worker *worker, const struct thrum_sched *sched) {
    return worker_is_called_away(worker) ||
           (sched != NULL && (scheduler_has_work(sched) || load_acquire(&sched->stopping)));
}

bool has_work_for_any(void) {
    if (!fifo_is_empty(&runtime.shared) || trim_is_wanted())
        return true;
    for (uint32_t i = 0; i < load_acquire(&runtime.count); i++) {
        const struct worker *worker = runtime.workers[i];
        if (!deque_is_empty(&worker->deque) || !yield_ring_is_empty(&worker->yields))
            return true;
    }
    return false;
}

/* For a worker that is about to park: is there something that it would run? */
static bool work_somewhere(void) {
    const struct worker *self = worker_here();
    if (load_acquire(&runtime.stopping) || worker_is_leaving(self) || !fifo_is_empty(&self->inbox))
        return true;
    if (self->idle_sched != NULL &&
        (scheduler_has_work(self->idle_sched) || load_acquire(&self->idle_sched->stopping)))
        return true;
    return load_acquire(&self->wanted_sched) != self->sched || has_work_for_any();
}

INSIDE static uint64_t park_until(void) {
    const struct thrum_sched *sched = worker_here()->idle_sched;
    uint64_t timers = timekeeper_until(), pools = sched != NULL ? scheduler_wait_until(sched) : TIMER_NEVER;
    return timers < pools ? timers : pools;
}

/* The caller's CPU may be taken while it searches: it has nothing that others wait for. */
struct thrum_unit *worker_search(struct worker *worker, struct thrum_sched *sched) {
    if (__builtin_expect(runtime.nodes > 1, 0))
        store_relaxed(&runtime.node_of[worker->id], topology_here());
    bool spin = idle_search(&runtime.idle);
    if (__builtin_expect(load_relaxed(&worker->tick.state) == TICK_REST, 0))
        tick_end(worker);
    trace_worker(worker, THRUM_TRACE_SEARCH);
    store_release(&worker->idle_sched, sched);
    for (uint64_t since = arch_ticks();;) {
        struct thrum_unit *unit = pick_anywhere(worker);
        if (unit != NULL || is_called_away(worker, sched)) {
            store_relaxed(&worker->idle_sched, NULL);
            timekeeper_leave(worker);
            idle_found(&runtime.idle, has_work_for_any);
            trace_worker(worker, THRUM_TRACE_FOUND);
            return unit;
        }
        for (int i = 0; i < RELAX; i++)
            arch_relax();
        if (spin && arch_ticks() - since < SEARCH_US * ticks_per_us())
            continue;
        count_one(&worker->counters.parks);
        trace_worker(worker, THRUM_TRACE_PARK);
        deque_shrink(&worker->deque);
        idle_park(&runtime.idle, &worker->parking, work_somewhere, park_until);
        trace_worker(worker, THRUM_TRACE_UNPARK);
        timekeeper_wakes(worker);
        since = arch_ticks();
    }
}

/* On the loop: what another unit left for it. */
INSIDE static void run_leftovers(struct worker *worker) {
    if (worker->ended != NULL) {
        struct thrum_unit *ended = worker->ended;
        worker->ended = NULL;
        annotate_stack_gone(unit_head_of(ended)->annotation, unit_stack(worker, ended));
        unit_publish_end(worker, ended);
    }
    while (worker->tasklet != NULL) {
        struct thrum_unit *tasklet = worker->tasklet;
        worker->tasklet = NULL;
        worker_wants_ticks(worker); /* the loop may have been found here, with nothing to do */
        tasklet_run(worker, tasklet);
    }
}

/* ... and those that keep a kernel thread: one after another, until the loop `self`, the caller, is not gone to for such. */
INSIDE static __attribute__((noinline)) void go_to_kept(struct worker *worker, struct thrum_unit *self) {
    for (struct thrum_unit *kept; (kept = worker->kept) != NULL; worker = worker_here()) {
        worker->kept = NULL;
        worker_wants_ticks(worker);
        carrier_go_to(worker, self, kept);
        run_leftovers(worker_here());
    }
}

/* Goes back to the loop `self`, which the caller is, when the unit waits, yields or ends. */
void worker_run(struct worker *worker, struct thrum_unit *unit) {
    struct thrum_unit *self = worker->current, *outer = worker->loop;
    run_leftovers(worker); /* the loop may be new, and have been gone to for that */
    if (__builtin_expect(worker->is_short, 0)) {
        worker->in_order = false;
        if ((unit = tcb_instead(worker, unit)) == NULL)
            return;
    }
    worker->loop = self;
    if (__builtin_expect(worker->kept != NULL, 0))
        go_to_kept(worker, self);
    worker = worker_here();
    worker_wants_ticks(worker);
    if (__builtin_expect(worker->in_order, 0))
        order_look_back(worker, unit);
    switch_as(worker, self, unit, THRUM_TRACE_HOST);
    worker = worker_here();
    if (__builtin_expect(worker->kept != NULL, 0)) {
        run_leftovers(worker);
        go_to_kept(worker, self);
        worker = worker_here();
    }
    worker->loop = outer;
    run_leftovers(worker);
}

static void loop_by_default(struct worker *worker) {
    while (!worker_is_called_away(worker)) {
        worker->has_scheduler = false; /* it may have been called away, and called back before it got here */
        enter();
        struct thrum_unit *unit = worker_search(worker, NULL);
        if (unit != NULL)
            worker_run(worker, unit);
        leave();
    }
}

void worker_loop(struct worker *worker) {
    enter();
    run_leftovers(worker); /* gone to for that, it begins only now */
    go_to_kept(worker, &worker->base);
    leave();
    while (!load_relaxed(&runtime.stopping) && !worker_is_leaving(worker)) {
        if (load_acquire(&worker->wanted_sched) != NULL)
            scheduler_run(worker);
        else
            loop_by_default(worker);
    }
}
