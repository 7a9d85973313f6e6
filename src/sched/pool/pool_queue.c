// SPDX-License-Identifier: Apache-2.0
/* FIFO and LIFO pools: a list under a lock. */
#include <errno.h>

#include "os/lock.h"
#include "sched/pool/pool.h"

struct queue {
    struct lock lock;
    uint32_t count; /* changed under lock, read by any thread */
    bool newest_first;
    struct thrum_unit *first, *last; /* under lock */
};

static void push(void *data, struct thrum_unit *unit) {
    struct queue *queue = data;
    lock_acquire(&queue->lock);
    unit->next = queue->newest_first ? queue->first : NULL;
    if (queue->newest_first || queue->first == NULL)
        queue->first = unit;
    else
        queue->last->next = unit;
    queue->last = unit; /* of no use to a LIFO */
    store_relaxed(&queue->count, queue->count + 1);
    lock_release(&queue->lock);
}

static struct thrum_unit *pop_locked(struct queue *queue) {
    struct thrum_unit *unit = queue->first;
    if (unit != NULL) {
        queue->first = unit->next;
        store_relaxed(&queue->count, queue->count - 1);
    }
    return unit;
}

static struct thrum_unit *pop(void *data) {
    struct queue *queue = data;
    if (load_relaxed(&queue->count) == 0)
        return NULL;
    lock_acquire(&queue->lock);
    struct thrum_unit *unit = pop_locked(queue);
    lock_release(&queue->lock);
    return unit;
}

static size_t pop_many(void *data, struct thrum_unit **units, size_t most) {
    struct queue *queue = data;
    size_t count = 0;
    lock_acquire(&queue->lock);
    while (count < most && (units[count] = pop_locked(queue)) != NULL)
        count++;
    lock_release(&queue->lock);
    return count;
}

static size_t size(void *data) {
    return load_relaxed(&((struct queue *)data)->count);
}

int pool_queue_init(struct thrum_pool *pool, bool newest_first) {
    struct queue *queue = pool_memory_get();
    if (queue == NULL)
        return ENOMEM;
    queue->newest_first = pool->newest_first = newest_first;
    pool->ops = (struct thrum_pool_ops){
        .push = push, .pop = pop, .size = size, .pop_many = pop_many, .destroy = pool_memory_put};
    pool->data = queue;
    return 0;
}
