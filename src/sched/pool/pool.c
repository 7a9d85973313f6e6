// SPDX-License-Identifier: Apache-2.0
/* Creating pools, and what all kinds share. */
#include "sched/pool/pool.h"

#include <errno.h>

#include "base/misuse.h"
#include "sched/pool/order.h"
#include "sched/pool/scheduler.h"
#include "sched/worker.h"

static int init_kind(struct thrum_pool *pool, enum thrum_pool_kind kind) {
    switch (kind) {
    case THRUM_POOL_FIFO: return pool_queue_init(pool, false);
    case THRUM_POOL_LIFO: return pool_queue_init(pool, true);
    case THRUM_POOL_PRIORITY: return pool_priority_init(pool);
    case THRUM_POOL_DEADLINE: return pool_deadline_init(pool);
    case THRUM_POOL_DEQUE: return pool_deque_init(pool);
    }
    return EINVAL;
}

int thrum_pool_create(thrum_pool_t *result, enum thrum_pool_kind kind) {
    if (is_null(result))
        return EINVAL;
    struct thrum_pool *pool = pool_new();
    int error = pool != NULL ? init_kind(pool, kind) : ENOMEM;
    if (error != 0 && pool != NULL)
        pool_free(pool);
    if (error == 0) {
        pool->is_ours = true;
        *result = pool;
    }
    return error;
}

int thrum_pool_create_user(thrum_pool_t *result, const struct thrum_pool_ops *ops, void *data) {
    if (is_null(result) || is_null(ops))
        return EINVAL;
    if (ops->push == NULL || ops->pop == NULL || ops->size == NULL)
        return EINVAL;
    struct thrum_pool *pool = pool_new();
    if (pool == NULL)
        return ENOMEM;
    pool->ops = *ops;
    pool->data = data;
    *result = pool;
    return 0;
}

/* A thread that has not ended, and would be enqueued in this pool when it next waits, yields or is woken. A detached
 * one that runs is left out: it may be about to end, which the pool's user cannot wait for. */
static bool is_to_come(const void *object, const void *pool) {
    const struct thrum_unit *unit = object;
    if (unit_place(unit) != UNIT_POOLED || load_relaxed(&unit->pool) != pool)
        return false;
    const struct thrum_unit *joiner = load_acquire(&unit->join); /* pairs with unit_publish_end */
    return joiner != JOIN_ENDED &&
           (joiner != JOIN_DETACHED || awaits_kind(load_relaxed(&unit->awaits)) != AWAITS_NOTHING);
}

/* Examines each descriptor, only if a thread may have this pool: counting its threads as they begin and end would
 * cost each of them two atomic operations on the pool. */
static bool has_threads(struct thrum_pool *pool) {
    if (!load_relaxed(&pool->was_used) || runtime_has_ended())
        return false;
    enter();
    bool found = depot_find(&unit_depot, is_to_come, pool);
    leave();
    return found;
}

/* No other thread uses it any more: `destroy` is called outside, as the user's own may well call free(). */
int thrum_pool_destroy(thrum_pool_t pool) {
    if (is_null(pool))
        return EINVAL;
    /* Pairs with thrum_sched_destroy. */
    if (load_acquire(&pool->scheds) != 0 || thrum_pool_size(pool) != 0 || has_threads(pool))
        return EBUSY;
    if (pool->ops.destroy != NULL)
        pool->ops.destroy(pool->data);
    pool_free(pool);
    return 0;
}

size_t thrum_pool_size(thrum_pool_t pool) {
    if (is_null(pool) || runtime_has_ended())
        return 0;
    enter();
    size_t size = pool->ops.size(pool->data);
    leave();
    return size;
}

thrum_t *thrum_link(thrum_t thread) {
    if (is_null(thread))
        misuse_null(__func__);
    return &thread->next;
}

thrum_t thrum_pool_pop(thrum_pool_t pool) {
    if (is_null(pool) || runtime_has_ended())
        return NULL;
    enter();
    struct thrum_unit *unit = pool->ops.pop(pool->data);
    leave();
    return unit;
}

thrum_t thrum_pool_steal(thrum_pool_t pool) {
    if (is_null(pool) || runtime_has_ended())
        return NULL;
    enter();
    struct thrum_unit *unit = (pool->steal != NULL ? pool->steal : pool->ops.pop)(pool->data);
    leave();
    return unit;
}

size_t thrum_pool_pop_many(thrum_pool_t pool, thrum_t *threads, size_t most) {
    if (is_null(pool) || is_null(threads) || runtime_has_ended())
        return 0;
    size_t count = 0;
    enter();
    if (pool->ops.pop_many != NULL)
        count = pool->ops.pop_many(pool->data, threads, most);
    else
        while (count < most && (threads[count] = pool->ops.pop(pool->data)) != NULL)
            count++;
    leave();
    return count;
}

INSIDE static void push_and_tell(struct thrum_pool *pool, struct thrum_unit *unit,
                                 void (*push)(void *data, struct thrum_unit *unit)) {
    unsigned priority = unit->priority;
    if (__builtin_expect(!load_relaxed(&pool->was_used), 0))
        store_relaxed(&pool->was_used, true);
    push(pool->data, unit); /* from here on it may be gone */
    if (!scheduler_wake_for(pool) && ticks_are_possible)
        order_interrupt_for(pool, priority);
}

void pool_push(struct thrum_pool *pool, struct thrum_unit *unit) {
    push_and_tell(pool, unit, pool->ops.push);
}

void pool_push_behind(struct thrum_pool *pool, struct thrum_unit *unit) {
    push_and_tell(pool, unit, pool->push_behind != NULL ? pool->push_behind : pool->ops.push);
}
