// SPDX-License-Identifier: Apache-2.0
/* See worker.h, life of a worker: how it comes to be, leaves, and ends. */
#include "sched/worker.h"

#include "sched/pool/scheduler.h"
#include "sched/trim.h"

int worker_init(struct worker *worker, uint32_t id) {
    worker->id = id;
    worker->aside = &worker->base;
    worker->random = UINT64_C(0x9e3779b97f4a7c15) * (id + 1);
    worker->base.kind = UNIT_LOOP;
    timers_init(&worker->timers);
    worker_ready(worker);
    int error = deque_init(&worker->deque, runtime.fenced);
    if (error == 0)
        trace_ring_init(&worker->trace);
    return error;
}

/* What its unit wakes goes where all workers look: its deque has no room. No pick of its own finds anything. */
void worker_init_solo(struct worker *worker) {
    worker->id = WORKER_SOLO_ID;
    worker->aside = &worker->base;
    worker->base.kind = UNIT_LOOP;
    timers_init(&worker->timers);
    worker_ready(worker);
    worker->until_slow = 1;
    worker->has_scheduler = true;
    store_relaxed(&worker->stay, WORKER_SOLO);
}

void worker_ready(struct worker *worker) {
    worker->until_slow = FAIR_EVERY;
    fair_init(&worker->fair);
    worker->has_scheduler = false;
    worker->current = worker->loop = &worker->base;
    worker->exceptions = watch_on ? &worker->no_exceptions : NULL;
    store_release(&worker->stay, WORKER_CLOSED);
}

void worker_open(struct worker *worker) {
    store_release(&worker->stay, WORKER_OPEN);
}

void worker_close(struct worker *worker) {
    lock_acquire(&worker->sched_lock);
    store_release(&worker->stay, WORKER_LEAVING);
    scheduler_want_locked(worker, NULL);
    lock_release(&worker->sched_lock);
    idle_wake_this(&runtime.idle, &worker->parking);
}

/* Either this sees a thread that is bound there, or worker_bind sees CLOSED. */
bool worker_ask_to_leave(struct worker *worker) {
    store_seq_cst(&worker->stay, WORKER_CLOSED);
    bool leaves = load_seq_cst(&worker->bound_units) == 0;
    if (leaves)
        worker_close(worker);
    else
        worker_open(worker);
    return leaves;
}

bool worker_bind(struct worker *worker) {
    fetch_add_seq_cst(&worker->bound_units, 1U);
    if (load_seq_cst(&worker->stay) == WORKER_OPEN)
        return true;
    worker_unbind(worker);
    return false;
}

void worker_unbind(struct worker *worker) {
    fetch_sub_release(&worker->bound_units, 1U);
}

INSIDE static void worker_flush(struct worker *worker) {
    for (unsigned i = 0; i < STACK_CLASSES; i++)
        depot_flush(&stack_depots[i], &worker->stacks[i]);
    depot_flush(&unit_depot, &worker->units);
}

INSIDE static void give_away(struct thrum_unit *unit) {
    fifo_push(&runtime.shared, unit);
    idle_wake_check(&runtime.idle);
}

/* Thieves are at it meanwhile: one that is faster has what there is. */
void worker_hand_over(struct worker *worker) {
    struct thrum_unit *unit;
    while (!deque_is_empty(&worker->deque))
        if ((unit = deque_pop_oldest(&worker->deque)) != NULL)
            give_away(unit);
    while ((unit = yield_ring_pop(&worker->yields)) != NULL)
        give_away(unit);
    worker_flush(worker);
    trim_tell();
    if (!timers_are_empty(&worker->timers)) {
        exchange_release(&runtime.orphans, 1U);
        fence_seq_cst(); /* pairs with fence_rare in tick_rest */
        tick_wake_resting();
    }
}

/* Unchecked: no worker runs any more, and nothing is preempted. */
INSIDE_UNCHECKED void worker_destroy(struct worker *worker) {
    if (worker->base.stack_top != NULL) /* its loop is over: no thread remains there (context/remains.h) */
        depot_put(&stack_depots[STACK_CLASS_DEFAULT], &worker->stacks[STACK_CLASS_DEFAULT],
                  worker->base.stack_top);
    worker_flush(worker);
    trace_ring_destroy(&worker->trace);
    deque_destroy(&worker->deque);
}
