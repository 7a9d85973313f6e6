// SPDX-License-Identifier: Apache-2.0
/* The priority pool: a list for each of the 64 priorities, and a word that says which of them have something. */
#include <errno.h>

#include "os/lock.h"
#include "sched/pool/pool.h"

enum { LEVELS = THRUM_PRIORITY_MAX + 1 };

struct levels {
    struct lock lock;
    uint32_t count;  /* changed under lock, read by any thread */
    uint64_t filled; /* likewise; bit i: list i is not empty */
    /* under lock */
    struct {
        struct thrum_unit *first, *last;
    } lists[LEVELS];
};

_Static_assert(LEVELS <= 64, "bits of `filled`");
_Static_assert(sizeof(struct levels) <= POOL_MEMORY, "pool.h");

static void push(void *data, struct thrum_unit *unit) {
    struct levels *levels = data;
    unsigned level = unit->priority;
    unit->next = NULL;
    lock_acquire(&levels->lock);
    if (levels->lists[level].first == NULL)
        levels->lists[level].first = unit;
    else
        levels->lists[level].last->next = unit;
    levels->lists[level].last = unit;
    store_relaxed(&levels->filled, levels->filled | UINT64_C(1) << level);
    store_relaxed(&levels->count, levels->count + 1);
    lock_release(&levels->lock);
}

static unsigned highest_of(uint64_t filled) {
    return filled != 0 ? 63 - (unsigned)__builtin_clzll(filled) : 0;
}

unsigned pool_priority_highest(const struct thrum_pool *pool) {
    const struct levels *levels = pool->data;
    return highest_of(load_relaxed(&levels->filled));
}

static struct thrum_unit *pop_locked(struct levels *levels) {
    if (levels->filled == 0)
        return NULL;
    unsigned level = highest_of(levels->filled);
    struct thrum_unit *unit = levels->lists[level].first;
    levels->lists[level].first = unit->next;
    if (unit->next == NULL)
        store_relaxed(&levels->filled, levels->filled & ~(UINT64_C(1) << level));
    store_relaxed(&levels->count, levels->count - 1);
    return unit;
}

static struct thrum_unit *pop(void *data) {
    struct levels *levels = data;
    if (load_relaxed(&levels->count) == 0)
        return NULL;
    lock_acquire(&levels->lock);
    struct thrum_unit *unit = pop_locked(levels);
    lock_release(&levels->lock);
    return unit;
}

static size_t size(void *data) {
    return load_relaxed(&((struct levels *)data)->count);
}

int pool_priority_init(struct thrum_pool *pool) {
    pool->data = pool_memory_get();
    pool->ranks = true;
    pool->ops = (struct thrum_pool_ops){.push = push, .pop = pop, .size = size, .destroy = pool_memory_put};
    return pool->data != NULL ? 0 : ENOMEM;
}
