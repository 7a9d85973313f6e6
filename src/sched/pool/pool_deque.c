// SPDX-License-Identifier: Apache-2.0
/* The deque pool: an owner pops the newest, a helper (thrum_pool_steal) takes the oldest. It is a doubly linked list
 * under a lock, since any waker may push; the deques of deque.h have one owner. A unit that has yielded goes to the
 * old end, behind those that have not run. */
#include <errno.h>

#include "os/lock.h"
#include "sched/pool/pool.h"

/* `next` leads to the older, `child` to the newer. */
struct ends {
    struct lock lock;
    uint32_t count;                     /* changed under lock, read by any thread */
    struct thrum_unit *newest, *oldest; /* under lock */
};

static void push(void *data, struct thrum_unit *unit) {
    struct ends *ends = data;
    unit->child = NULL;
    lock_acquire(&ends->lock);
    unit->next = ends->newest;
    if (ends->newest != NULL)
        ends->newest->child = unit;
    else
        ends->oldest = unit;
    ends->newest = unit;
    store_relaxed(&ends->count, ends->count + 1);
    lock_release(&ends->lock);
}

static void push_behind(void *data, struct thrum_unit *unit) {
    struct ends *ends = data;
    unit->next = NULL;
    lock_acquire(&ends->lock);
    unit->child = ends->oldest;
    if (ends->oldest != NULL)
        ends->oldest->next = unit;
    else
        ends->newest = unit;
    ends->oldest = unit;
    store_relaxed(&ends->count, ends->count + 1);
    lock_release(&ends->lock);
}

static struct thrum_unit *pop_locked(struct ends *ends) {
    struct thrum_unit *unit = ends->newest;
    if (unit == NULL)
        return NULL;
    ends->newest = unit->next;
    if (ends->newest != NULL)
        ends->newest->child = NULL;
    else
        ends->oldest = NULL;
    store_relaxed(&ends->count, ends->count - 1);
    return unit;
}

static struct thrum_unit *steal_locked(struct ends *ends) {
    struct thrum_unit *unit = ends->oldest;
    if (unit == NULL)
        return NULL;
    ends->oldest = unit->child;
    if (ends->oldest != NULL)
        ends->oldest->next = NULL;
    else
        ends->newest = NULL;
    store_relaxed(&ends->count, ends->count - 1);
    return unit;
}

static struct thrum_unit *pop(void *data) {
    struct ends *ends = data;
    if (load_relaxed(&ends->count) == 0)
        return NULL;
    lock_acquire(&ends->lock);
    struct thrum_unit *unit = pop_locked(ends);
    lock_release(&ends->lock);
    return unit;
}

static struct thrum_unit *steal(void *data) {
    struct ends *ends = data;
    if (load_relaxed(&ends->count) == 0)
        return NULL;
    lock_acquire(&ends->lock);
    struct thrum_unit *unit = steal_locked(ends);
    lock_release(&ends->lock);
    return unit;
}

static size_t size(void *data) {
    return load_relaxed(&((struct ends *)data)->count);
}

int pool_deque_init(struct thrum_pool *pool) {
    pool->data = pool_memory_get();
    pool->newest_first = true;
    pool->steal = steal;
    pool->push_behind = push_behind;
    pool->ops = (struct thrum_pool_ops){.push = push, .pop = pop, .size = size, .destroy = pool_memory_put};
    return pool->data != NULL ? 0 : ENOMEM;
}
