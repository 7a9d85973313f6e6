// SPDX-License-Identifier: Apache-2.0
/* See scheduler.h: schedulers as things that are created, looked at, and woken. */
#include "sched/pool/scheduler.h"

#include <errno.h>

#include "base/misuse.h"
#include "base/slab.h"
#include "sched/pool/pool.h"
#include "sched/worker.h"

/* Schedulers of up to so many pools come from one slab, those of more from another. A reader with a stale pointer (order.c)
 * may find a later scheduler there, with any `count`: its pools must lie in the same object. */
enum { SCHED_POOLS_FEW = 64 };

#define SCHED_SIZE(pools) SLAB_SIZE(sizeof(struct thrum_sched) + (pools) * sizeof(struct thrum_pool *))

static struct {
    struct lock lock;
    struct slab few, many; /* under lock */
} memory = {.few.object_size = SCHED_SIZE(SCHED_POOLS_FEW), .many.object_size = SCHED_SIZE(SCHED_POOLS)};

static struct slab *slab_for(unsigned count) {
    return count <= SCHED_POOLS_FEW ? &memory.few : &memory.many;
}

void (*scheduler_wake_stacked)(const struct thrum_pool *pool);

static uint32_t runtimes = 1; /* that there have been, and the one that is or will be */

/* --- life --------------------------------------------------------------------------------------------- */

int thrum_sched_create_user(thrum_sched_t *result, void (*run)(thrum_sched_t sched, void *data), void *data,
                            const thrum_pool_t *pools, unsigned count) {
    if (is_null(result) || run == NULL || is_null(pools) || count == 0 || count > SCHED_POOLS)
        return EINVAL;
    for (unsigned i = 0; i < count; i++)
        if (is_null(pools[i]))
            return EINVAL;
    enter();
    lock_acquire(&memory.lock);
    struct thrum_sched *sched = slab_alloc_locked(slab_for(count));
    lock_release(&memory.lock);
    leave();
    if (sched == NULL)
        return ENOMEM;
    sched->run = run;
    sched->may_hold = true;
    sched->data = data;
    sched->count = count;
    sched->random = (uintptr_t)sched;
    for (unsigned i = 0; i < count; i++) {
        sched->pools[i] = pools[i];
        fetch_add_relaxed(&pools[i]->scheds, 1U);
    }
    *result = sched;
    return 0;
}

int thrum_sched_destroy(thrum_sched_t sched) {
    if (is_null(sched))
        return EINVAL;
    /* Pair with scheduler_release and scheduler_forget: its user has made its last access. */
    if (load_acquire(&sched->used) == load_acquire(&runtimes))
        return EBUSY;
    for (unsigned i = 0; i < sched->count; i++)
        fetch_sub_release(&sched->pools[i]->scheds, 1U); /* pairs with thrum_pool_destroy */
    enter();
    struct slab *slab = slab_for(sched->count);
    lock_acquire(&memory.lock);
    slab_free_locked(slab, sched);
    lock_release(&memory.lock);
    leave();
    return 0;
}

/* Ticks must be as frequent as its slice, from when it is run. */
int thrum_sched_set_slice(thrum_sched_t sched, unsigned slice) {
    if (is_null(sched))
        return EINVAL;
    if (slice != 0 && (slice < THRUM_SLICE_MIN || slice > THRUM_SLICE_MAX))
        return EINVAL;
    store_relaxed(&sched->slice, slice);
    tick_can_preempt(THRUM_PREEMPT_DEFAULT, slice);
    return 0;
}

/* Its user in an earlier runtime is gone. */
bool scheduler_claim(struct thrum_sched *sched) {
    /* This and the next pair with scheduler_forget, and scheduler_release. */
    uint32_t number = load_acquire(&runtimes), used = load_relaxed(&sched->used);
    if (used == number || !cas_acq_rel(&sched->used, &used, number))
        return false;
    store_relaxed(&sched->stopping, 0);
    return true;
}

void scheduler_release(struct thrum_sched *sched) {
    store_release(&sched->used, 0); /* pairs with scheduler_claim and thrum_sched_destroy */
}

uint32_t scheduler_runtime(void) {
    return load_relaxed(&runtimes);
}

void scheduler_forget(void) {
    store_release(&runtimes, runtimes + 1); /* pairs with scheduler_claim and thrum_sched_destroy */
}

/* --- workers ------------------------------------------------------------------------------------------ */

bool scheduler_has_work(const struct thrum_sched *sched) {
    for (unsigned i = 0; i < sched->count; i++)
        if (!pool_is_empty(sched->pools[i]))
            return true;
    return false;
}

uint64_t scheduler_wait_until(const struct thrum_sched *sched) {
    uint64_t until = TIMER_NEVER;
    for (unsigned i = 0; i < sched->count; i++) {
        const struct thrum_pool *pool = sched->pools[i];
        uint64_t look_again = pool->ops.wait != NULL ? pool->ops.wait(pool->data) : TIMER_NEVER;
        until = look_again < until ? look_again : until;
    }
    return until;
}

bool scheduler_looks_at(const struct thrum_sched *sched, const struct thrum_pool *pool) {
    for (unsigned i = 0; sched != NULL && i < sched->count; i++)
        if (sched->pools[i] == pool)
            return true;
    return false;
}

/* (1) and (2) of idle.h, with all workers that look at this pool in the place of the count. */
INSIDE static bool wake_worker_for(const struct thrum_pool *pool) {
    bool is_searched = false;
    if (load_relaxed(&runtime.idle.count) == 0)
        return false;
    for (uint32_t i = 0; i < load_acquire(&runtime.count); i++) {
        struct worker *worker = runtime.workers[i];
        if (!scheduler_looks_at(load_acquire(&worker->idle_sched), pool))
            continue;
        if (idle_wake_this(&runtime.idle, &worker->parking))
            return true;
        is_searched = true;
    }
    return is_searched;
}

bool scheduler_wake_for(const struct thrum_pool *pool) {
    fence_seq_cst(); /* after the push; pairs with fence_rare in idle_park and tick_rest, and has_waited's */
    if (load_relaxed(&runtime.idle.resting) != 0)
        tick_wake_resting();
    bool is_searched = wake_worker_for(pool);
    /* Pairs, by the fences, with the store in add (stacked.c). */
    void (*wake_stacked)(const struct thrum_pool *) = load_acquire(&scheduler_wake_stacked);
    if (!is_searched && wake_stacked != NULL)
        wake_stacked(pool);
    return is_searched;
}

void scheduler_wake(const struct thrum_sched *sched) {
    for (uint32_t i = 0; i < load_acquire(&runtime.count); i++) {
        struct worker *worker = runtime.workers[i];
        if (load_acquire(&worker->idle_sched) == sched)
            idle_wake_this(&runtime.idle, &worker->parking);
    }
}

void scheduler_want_locked(struct worker *worker, struct thrum_sched *sched) {
    struct thrum_sched *before = worker->wanted_sched;
    store_release(&worker->wanted_sched, sched);
    if (before != NULL && before != worker->sched)
        scheduler_release(before);
}

void scheduler_fork_child(void) {
    scheduler_forget();
    lock_reset(&memory.lock);
    memory.few.free = memory.many.free = NULL;
}
