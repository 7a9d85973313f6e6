// SPDX-License-Identifier: Apache-2.0
/* The deadline pool: a pairing heap (Fredman, Sedgewick, Sleator, Tarjan 1986) linked through the units, so that a
 * push cannot fail; equal deadlines in order of arrival. */
#include <errno.h>

#include "os/lock.h"
#include "sched/pool/pool.h"

struct heap {
    struct lock lock;
    uint32_t count;          /* changed under lock, read by any thread */
    struct thrum_unit *root; /* under lock, as below */
    uint64_t arrivals;
};

static bool is_before(const struct thrum_unit *a, const struct thrum_unit *b) {
    return a->deadline != b->deadline ? a->deadline < b->deadline : a->arrival < b->arrival;
}

/* `next` links siblings, `child` leads to the first of them. */
static struct thrum_unit *meld(struct thrum_unit *a, struct thrum_unit *b) {
    if (a == NULL || b == NULL)
        return a != NULL ? a : b;
    if (is_before(b, a)) {
        struct thrum_unit *swap = a;
        a = b;
        b = swap;
    }
    b->next = a->child;
    a->child = b;
    return a;
}

/* Pairs from the left, then together from the right; without recursion, since there may be a million. */
static struct thrum_unit *meld_all(struct thrum_unit *first) {
    struct thrum_unit *pairs = NULL, *all = NULL;
    while (first != NULL) {
        struct thrum_unit *a = first, *b = a->next;
        first = b != NULL ? b->next : NULL;
        a->next = NULL;
        if (b != NULL)
            b->next = NULL;
        struct thrum_unit *pair = meld(a, b);
        pair->next = pairs;
        pairs = pair;
    }
    while (pairs != NULL) {
        struct thrum_unit *pair = pairs;
        pairs = pair->next;
        pair->next = NULL;
        all = meld(all, pair);
    }
    return all;
}

static void push(void *data, struct thrum_unit *unit) {
    struct heap *heap = data;
    unit->next = unit->child = NULL;
    lock_acquire(&heap->lock);
    unit->arrival = heap->arrivals++;
    heap->root = meld(heap->root, unit);
    store_relaxed(&heap->count, heap->count + 1);
    lock_release(&heap->lock);
}

static struct thrum_unit *pop(void *data) {
    struct heap *heap = data;
    if (load_relaxed(&heap->count) == 0)
        return NULL;
    lock_acquire(&heap->lock);
    struct thrum_unit *unit = heap->root;
    if (unit != NULL) {
        heap->root = meld_all(unit->child);
        store_relaxed(&heap->count, heap->count - 1);
    }
    lock_release(&heap->lock);
    return unit;
}

static size_t size(void *data) {
    return load_relaxed(&((struct heap *)data)->count);
}

int pool_deadline_init(struct thrum_pool *pool) {
    pool->data = pool_memory_get();
    pool->ops = (struct thrum_pool_ops){.push = push, .pop = pop, .size = size, .destroy = pool_memory_put};
    return pool->data != NULL ? 0 : ENOMEM;
}
