// SPDX-License-Identifier: Apache-2.0
/* See preempted.h. */
#include "sched/preempted.h"

#include "sched/pool/pool.h"
#include "sched/pool/scheduler.h"
#include "sched/worker.h"

/* How many units it examines at a time. */
enum { FAR = 4096 };

enum { QUEUES = 4, QUEUES_AND_OTHERS };

/* Or has a block for life: the primary keeps its own, and is away from its kernel thread then (primary.c). */
static bool was_preempted(const struct thrum_unit *unit) {
    return unit->tcb != NULL;
}

INSIDE static struct thrum_unit *take_from_fifo(struct fifo *fifo) {
    struct thrum_unit *unit;
    uint32_t count = load_relaxed(&fifo->count);
    for (uint32_t i = 0; i < count && i < FAR && (unit = fifo_pop(fifo)) != NULL; i++) {
        if (was_preempted(unit))
            return unit;
        unit_wake_elsewhere(NULL, unit); /* a worker that parked meanwhile did not see it */
    }
    return NULL;
}

INSIDE static struct thrum_unit *pop_from_rings(struct worker *from) {
    struct thrum_unit *unit = yield_ring_pop(&from->yields);
    if (unit != NULL || deque_is_empty(&from->deque))
        return unit;
    return from == worker_here() ? deque_pop_oldest(&from->deque) : deque_steal(&from->deque);
}

/* Units that are not taken go to all workers. */
INSIDE static struct thrum_unit *take_from_rings(struct worker *from) {
    for (uint32_t i = 0; i < FAR; i++) {
        struct thrum_unit *unit = pop_from_rings(from);
        if (unit == NULL || was_preempted(unit))
            return unit;
        unit_wake_elsewhere(NULL, unit);
    }
    return NULL;
}

/* It would steal from them, and they may compute without yielding. */
INSIDE static struct thrum_unit *take_from_others(const struct worker *from, uint32_t drawn) {
    struct thrum_unit *unit = NULL;
    uint32_t count = load_acquire(&runtime.count);
    for (uint32_t i = 0; i < count && unit == NULL; i++) {
        struct worker *other = runtime.workers[(drawn + i) % count];
        if (other != from)
            unit = take_from_rings(other);
    }
    return unit;
}

/* Units popped from a pool, in the order in which they go back. */
struct popped {
    struct thrum_unit *first, *last;
    uint32_t preempted; /* so many were */
};

static void add(struct popped *popped, struct thrum_unit *unit, bool in_front) {
    popped->preempted += was_preempted(unit);
    unit->next = in_front ? popped->first : NULL;
    if (in_front || popped->first == NULL)
        popped->first = unit;
    else
        popped->last->next = unit;
    if (unit->next == NULL)
        popped->last = unit;
}

static struct popped pop_all(struct thrum_pool *pool) {
    struct popped popped = {NULL, NULL, 0};
    struct thrum_unit *unit;
    for (uint32_t i = 0; i < FAR && (unit = pool->ops.pop(pool->data)) != NULL; i++)
        add(&popped, unit, pool->newest_first);
    return popped;
}

/* Number `which` of the preempted units, counted in a circle. All others go back in the same order, except that in a
 * pool with more units than are examined the first of a rank go behind the rest of that rank. */
INSIDE static struct thrum_unit *take_from_pool(struct thrum_pool *pool, uint32_t which) {
    struct popped popped = pop_all(pool);
    uint32_t skip = popped.preempted > 0 ? which % popped.preempted : 0;
    struct thrum_unit *taken = NULL, *next;
    for (struct thrum_unit *unit = popped.first; unit != NULL; unit = next) {
        next = unit->next;
        if (taken == NULL && was_preempted(unit) && skip-- == 0)
            taken = unit;
        else
            pool->ops.push(pool->data, unit); /* as always: it does not interrupt a worker once more */
    }
    if (popped.first != NULL)
        scheduler_wake_for(pool);
    return taken;
}

/* From a pool of the program's own only one is taken, since what is put back may not find its place again. */
INSIDE static struct thrum_unit *take_from_pools(const struct thrum_sched *sched, bool is_own,
                                                 uint32_t drawn) {
    struct thrum_unit *unit = NULL;
    for (unsigned i = 0; sched != NULL && i < sched->count && unit == NULL; i++) {
        struct thrum_pool *pool = sched->pools[(drawn + i) % sched->count];
        if (pool->is_ours)
            unit = take_from_pool(pool, drawn / sched->count);
        else if (is_own)
            unit = pool->ops.pop(pool->data);
    }
    return unit;
}

/* While it runs there a scheduler has its pools. */
INSIDE static struct thrum_unit *take_from_pools_of(struct worker *from, uint32_t drawn) {
    lock_acquire(&from->sched_lock);
    struct thrum_unit *unit = take_from_pools(from->sched, false, drawn);
    lock_release(&from->sched_lock);
    return unit;
}

struct thrum_unit *preempted_take(struct worker *worker, struct worker *from, const struct thrum_sched *own) {
    struct thrum_unit *unit = NULL;
    uint32_t queues = worker != from ? QUEUES_AND_OTHERS : QUEUES;
    uint32_t drawn = (uint32_t)(worker_random(worker) >> 32), rest = drawn / queues;
    for (unsigned i = 0; i < queues && unit == NULL; i++) {
        switch ((drawn + i) % queues) {
        case 0: unit = take_from_fifo(&from->inbox); break;
        case 1: unit = take_from_rings(from); break;
        case 2: unit = take_from_fifo(&runtime.shared); break;
        case QUEUES: unit = take_from_others(from, rest); break;
        default:
            unit = own != NULL ? take_from_pools(own, true, rest) : take_from_pools_of(from, rest);
            break;
        }
    }
    return unit;
}
