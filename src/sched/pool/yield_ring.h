// SPDX-License-Identifier: Apache-2.0
/* Where units wait that have yielded: oldest first, after what is in the deque. The owner pushes; the owner and
 * thieves pop by a cas on `head`, so the queue needs no fence. Overflow goes to the shared queue.
 *
 * Linearization: push at the store to tail, pop at the cas on head. head and tail only grow, so the cas rules out
 * ABA; a slot is written again only when head has passed it, and a thief that read it before fails in its cas. */
#ifndef THRUM_SCHED_POOL_YIELD_RING_H
#define THRUM_SCHED_POOL_YIELD_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/inside.h"

struct thrum_unit;

enum { YIELD_RING_SIZE = 1024 };

struct yield_ring {
    _Alignas(128) int64_t tail;
    _Alignas(128) int64_t head;
    struct thrum_unit *slots[YIELD_RING_SIZE];
};

static inline bool yield_ring_is_empty(const struct yield_ring *ring) {
    return load_relaxed(&ring->tail) <= load_relaxed(&ring->head);
}

/* As the owner sees it; others may have popped meanwhile. */
static inline uint32_t yield_ring_count(const struct yield_ring *ring) {
    int64_t count = load_relaxed(&ring->tail) - load_relaxed(&ring->head);
    return count > 0 ? (uint32_t)count : 0;
}

/* False: full. */
INSIDE static inline bool yield_ring_push(struct yield_ring *ring, struct thrum_unit *unit) {
    int64_t tail = load_relaxed(&ring->tail);
    /* Pairs with pop's cas: its slot was read. */
    if (__builtin_expect(tail - load_acquire(&ring->head) >= YIELD_RING_SIZE, 0))
        return false;
    store_relaxed(&ring->slots[(uint64_t)tail % YIELD_RING_SIZE], unit);
    store_release(&ring->tail, tail + 1); /* pairs with pop's load: it sees the slot */
    return true;
}

INSIDE static inline struct thrum_unit *yield_ring_pop(struct yield_ring *ring) {
    /* This pairs with the cas of others, and the next with push: the slot is there. */
    int64_t head = load_acquire(&ring->head);
    while (head < load_acquire(&ring->tail)) {
        struct thrum_unit *unit = load_relaxed(&ring->slots[(uint64_t)head % YIELD_RING_SIZE]);
        if (cas_acq_rel(&ring->head, &head, head + 1)) /* pairs with push's load: the slot is free */
            return unit;
    }
    return NULL;
}

#endif
