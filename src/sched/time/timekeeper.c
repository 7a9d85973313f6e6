// SPDX-License-Identifier: Apache-2.0
/* See timekeeper.h. */
#include "sched/time/timekeeper.h"

#include "sched/worker.h"

static struct {
    _Alignas(64) uint32_t keeper;
    uint64_t until;
} timekeeper;

void timekeeper_init(void) {
    timekeeper.keeper = 0;
    timekeeper.until = TIMER_NEVER;
}

uint32_t timekeeper_current(void) {
    return load_relaxed(&timekeeper.keeper) - 1;
}

/* A parked worker: one that finds no keeper becomes it. */
static void tell_a_parked_worker(void) {
    if (load_relaxed(&runtime.idle.count) % IDLE_SEARCHING == 0)
        return;
    for (uint32_t i = 0; i < load_acquire(&runtime.count); i++)
        if (idle_look_again(&runtime.workers[i]->parking))
            return;
}

void timekeeper_tell(uint64_t deadline) {
    /* After the timer's publication; pairs with timekeeper_until's: the keeper sees the timer, or this `until`. */
    fence_seq_cst();
    if (deadline >= load_relaxed(&timekeeper.until))
        return;
    uint32_t keeper = timekeeper_current();
    if (keeper < load_acquire(&runtime.count))
        idle_look_again(&runtime.workers[keeper]->parking);
    else
        tell_a_parked_worker();
}

static bool become_keeper(struct worker *worker) {
    uint32_t none = 0;
    /* Pairs with timekeeper_leave: the last one's `until` is there. */
    worker->keeps_time = cas_acquire(&timekeeper.keeper, &none, worker->id + 1);
    return worker->keeps_time;
}

uint64_t timekeeper_until(void) {
    struct worker *worker = worker_here();
    for (;;) {
        if (timers_were_used())
            fence_seq_cst(); /* `until` before the timers; pairs with timekeeper_tell's */
        uint64_t next = timers_next();
        if (!worker->keeps_time && (next == TIMER_NEVER || !become_keeper(worker)))
            return TIMER_NEVER;
        if (load_relaxed(&timekeeper.until) == next)
            return next;
        store_relaxed(&timekeeper.until, next);
    }
}

void timekeeper_wakes(struct worker *worker) {
    if (worker->keeps_time)
        store_relaxed(&timekeeper.until, 0);
}

void timekeeper_leave(struct worker *worker) {
    if (!timers_were_used())
        return;
    if (worker->keeps_time) {
        worker->keeps_time = false;
        store_relaxed(&timekeeper.until, TIMER_NEVER);
        store_release(&timekeeper.keeper, 0); /* pairs with become_keeper's cas */
    } else if (load_relaxed(&timekeeper.keeper) != 0) {
        return; /* it will see to it */
    }
    fence_seq_cst(); /* pairs with timekeeper_tell's: that finds no keeper, or this finds its timer */
    if (timers_next() != TIMER_NEVER)
        tell_a_parked_worker();
}
