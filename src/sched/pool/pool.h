// SPDX-License-Identifier: Apache-2.0
/* Pools, from inside; the public side is <thrum/pool.h>. All kinds go through one table of functions. */
#ifndef THRUM_SCHED_POOL_POOL_H
#define THRUM_SCHED_POOL_POOL_H

#include "base/inside.h"
#include "sched/unit.h"
#include "thrum/pool.h"

struct thrum_pool {
    struct thrum_pool_ops ops; /* r/o */
    void *data;                /* r/o */
    bool ranks;                /* units of higher priority come first; r/o, as the next two */
    bool is_ours;              /* of a kind of the library's own */
    bool newest_first;
    struct thrum_unit *(*steal)(void *data);                  /* NULL: as pop; r/o, as the next */
    void (*push_behind)(void *data, struct thrum_unit *unit); /* one that has yielded; NULL: as push */
    bool was_used;                                            /* a thread has been pushed into it */
    uint32_t scheds; /* that were made with it and are there; a pool is counted as often as it was given */
};

/* The unit is runnable: enqueues it there and ensures that one of the workers whose scheduler serves the pool is
 * awake. */
INSIDE void pool_push(struct thrum_pool *pool, struct thrum_unit *unit);
/* ... but yields to the others. */
INSIDE void pool_push_behind(struct thrum_pool *pool, struct thrum_unit *unit);

static inline bool pool_is_empty(const struct thrum_pool *pool) {
    return pool->ops.size(pool->data) == 0;
}

/* The kinds of the library's own; 0 or ENOMEM. They set ops and data. */
int pool_queue_init(struct thrum_pool *pool, bool newest_first);
int pool_priority_init(struct thrum_pool *pool);
/* ... of one that ranks: the highest priority that something there has, 0 if there is nothing. What is read may be out of date. */
unsigned pool_priority_highest(const struct thrum_pool *pool);
int pool_deadline_init(struct thrum_pool *pool);
int pool_deque_init(struct thrum_pool *pool);

/* Pools themselves: zeroed; NULL without memory. Not in a signal handler. */
struct thrum_pool *pool_new(void);
void pool_free(struct thrum_pool *pool);
/* Memory for them: zeroed, kept for good in the slab of its size. NULL without memory. */
void *pool_memory_get(void);
void pool_memory_put(void *memory);
void pool_fork_child(void);

enum { POOL_MEMORY = 1088 };

#endif
