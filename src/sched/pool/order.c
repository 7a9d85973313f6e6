// SPDX-License-Identifier: Apache-2.0
/* See order.h. */
#include "sched/pool/order.h"

#include "os/membarrier.h"
#include "sched/pool/pool.h"
#include "sched/pool/scheduler.h"
#include "sched/worker.h"

static uint32_t externals_look; /* likewise struct worker's `looks` */

enum { RUNS_BEFORE_ALL = 0, FIRST_OF_ALL = 1, COMES_AFTER_ALL = SCHED_POOLS * (THRUM_PRIORITY_MAX + 1) + 1 };

/* How many steps of the scheduler's order are before its pool `i`, as far as that is known. The scheduler may be
 * changing meanwhile. */
static unsigned steps_before(const struct thrum_sched *sched, unsigned i) {
    unsigned levels = load_relaxed(&sched->levels);
    if (i < levels || levels == 0)
        return load_relaxed(&sched->by_order) ? i : 0;
    unsigned others = load_relaxed(&sched->count) / levels - 1;
    return others > 0 ? levels + (i - levels) / others : 0;
}

/* The place of a unit of this priority in this pool in the scheduler's order, as far as that is known: by pools, if it
 * takes from the first that has something, and by priority within one that ranks. */
static unsigned place_of(const struct thrum_sched *sched, const struct thrum_pool *pool, unsigned priority) {
    for (unsigned i = 0; i < sched->count; i++)
        if (sched->pools[i] == pool) {
            unsigned before = steps_before(sched, i);
            return before * (THRUM_PRIORITY_MAX + 1) + (pool->ranks ? THRUM_PRIORITY_MAX - priority : 0) + 1;
        }
    return COMES_AFTER_ALL;
}

/* The rank of what the worker runs. A unit from no pool was picked because the pools were empty; a unit bound there
 * runs nowhere else, and a loop or a tasklet is not interrupted. The values read may be out of date. */
static unsigned place_of_present(const struct worker *worker, const struct thrum_sched *sched) {
    const struct thrum_unit *unit = load_relaxed(&worker->current);
    if (unit == NULL)
        return RUNS_BEFORE_ALL; /* it has just ended */
    switch ((enum unit_kind)load_relaxed(&unit->kind)) {
    case UNIT_ULT: return COMES_AFTER_ALL;
    case UNIT_POOLED: return place_of(sched, load_relaxed(&unit->pool), unit->priority);
    default: return RUNS_BEFORE_ALL;
    }
}

/* Keeps a unit that is read here mapped, though it may have ended. The reader (1) says that it reads, (2) reads which
 * unit runs. A thread that would unmap units (1) sees that no thread reads, (2) takes only units that have been idle,
 * and no worker's current, since long before (a worker clears its own before the end is published). As with parking
 * (idle.h) the rare side's fence makes up for the frequent one's. External kernel threads have a count. */
static void look_begin(struct worker *self) {
    if (self != NULL)
        store_relaxed(&self->looks, 1);
    else
        fetch_add_seq_cst(&externals_look, 1U); /* pairs as `looks`, by the fence */
    fence_frequent(runtime.fenced);             /* pairs with fence_rare in order_units_are_read */
}

static void look_end(struct worker *self) {
    if (self != NULL)
        store_release(&self->looks, 0);
    else
        fetch_sub_release(&externals_look, 1U); /* pairs with order_units_are_read: it has read */
}

bool order_units_are_read(void) {
    fence_rare(runtime.fenced);                         /* pairs with fence_frequent in look_begin */
    bool are_read = load_acquire(&externals_look) != 0; /* pairs with look_end */
    for (uint32_t i = 0; i < load_acquire(&runtime.count) && !are_read; i++)
        are_read = load_acquire(&runtime.workers[i]->looks) != 0;
    return are_read;
}

static struct worker *worker_to_interrupt(const struct thrum_pool *pool, unsigned priority) {
    struct worker *last = NULL;
    unsigned place_of_last = RUNS_BEFORE_ALL;
    for (uint32_t i = 0; i < load_acquire(&runtime.count); i++) {
        struct worker *worker = runtime.workers[i];
        const struct thrum_sched *sched = load_relaxed(&worker->sched);
        if (!scheduler_looks_at(sched, pool))
            continue;
        unsigned present = place_of_present(worker, sched);
        if (present > place_of(sched, pool, priority) && present > place_of_last) {
            last = worker;
            place_of_last = present;
        }
    }
    return last;
}

void order_interrupt_for(const struct thrum_pool *pool, unsigned priority) {
    struct worker *self = worker_here();
    look_begin(self);
    struct worker *last = worker_to_interrupt(pool, priority);
    look_end(self);
    if (last != NULL)
        tick_interrupt(last);
}

/* Where it steals, it takes from the others' pools of a level at random, not by what is in them. */
static bool is_drawn(const struct thrum_sched *sched, unsigned i) {
    unsigned levels = load_relaxed(&sched->levels);
    return levels > 0 && i >= levels;
}

/* Only what the scheduler would really take first; otherwise the unit that it then chooses would be interrupted again
 * and again. So: for other pools, where the scheduler goes by their order, and only kinds of pool whose contents are
 * known to be available. */
static bool has_before(const struct thrum_sched *sched, const struct thrum_pool *own, unsigned place) {
    for (unsigned i = 0; i < sched->count; i++) {
        const struct thrum_pool *pool = sched->pools[i];
        bool by_rank = pool->ranks && (pool == own || !is_drawn(sched, i));
        if (pool->is_ours && (load_relaxed(&sched->by_order) || pool == own) && !pool_is_empty(pool) &&
            place_of(sched, pool, by_rank ? pool_priority_highest(pool) : 0) < place)
            return true;
    }
    return false;
}

/* A push while the loop chooses finds no unit to interrupt, or the previous one. So (1) the worker publishes the unit
 * that it has chosen, and (2) looks at the pools once more; a pusher pushes and (2) reads which unit runs. With a
 * fence between the steps, one of them sees the other. Modelled in tests/model/choose.pml. */
void order_look_back(struct worker *worker, struct thrum_unit *chosen) {
    const struct thrum_sched *sched = worker->sched;
    store_relaxed(&worker->current, chosen);
    unsigned place = sched != NULL ? place_of_present(worker, sched) : 0;
    if (place <= FIRST_OF_ALL)
        return;
    fence_seq_cst(); /* pairs with look_begin's, after a push: that sees `chosen`, or this sees the push */
    bool is_pooled = load_relaxed(&chosen->kind) == UNIT_POOLED; /* or it has that of a former thread */
    if (has_before(sched, is_pooled ? load_relaxed(&chosen->pool) : NULL, place))
        tick_interrupt(worker);
}

void order_fork_child(void) {
    externals_look = 0;
}
