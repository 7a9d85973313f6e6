// SPDX-License-Identifier: Apache-2.0
/* See deque.h. */
#include "sched/pool/deque.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomic.h"
#include "os/membarrier.h"
#include "os/memory.h"

static size_t ring_bytes(int64_t size) {
    return sizeof(struct deque_ring) + (size_t)size * sizeof(struct thrum_unit *);
}

static struct deque_ring *ring_new(int64_t size, struct deque_ring *smaller) {
    struct deque_ring *ring = memory_map(ring_bytes(size), 0);
    if (ring == NULL)
        return NULL;
    ring->mask = size - 1;
    ring->smaller = smaller;
    return ring;
}

static struct deque_ring *first_ring(const struct deque *deque) {
    struct deque_ring *ring = deque->ring;
    while (ring != NULL && ring->smaller != NULL)
        ring = ring->smaller;
    return ring;
}

int deque_init(struct deque *deque, bool fenced) {
    *deque = (struct deque){.limit = DEQUE_SIZE_AT_FIRST, .always_shared = fenced, .shared = fenced};
    deque->ring = ring_new(DEQUE_SIZE_AT_FIRST, NULL);
    return deque->ring != NULL ? 0 : ENOMEM;
}

void deque_destroy(struct deque *deque) {
    for (struct deque_ring *ring = first_ring(deque); ring != NULL;) {
        struct deque_ring *larger = ring->larger;
        munmap(ring, ring_bytes(ring->mask + 1));
        ring = larger;
    }
    deque->ring = NULL;
}

static struct deque_ring *larger_ring(struct deque_ring *ring) {
    if (ring->larger == NULL)
        ring->larger = ring_new(2 * (ring->mask + 1), ring);
    return ring->larger;
}

/* Not the page with its head: a thief may be reading that. */
static void give_back_slots(struct deque_ring *ring) {
    char *from = (char *)ring + sysconf(_SC_PAGESIZE), *end = (char *)ring + ring_bytes(ring->mask + 1);
    if (from < end)
        memory_advise(from, (size_t)(end - from), MADV_DONTNEED);
}

void deque_shrink_slow(struct deque *deque) {
    int64_t head = load_acquire(&deque->head); /* pairs with the cas of a thief: it has read its slot */
    if (load_relaxed(&deque->tail) > head)
        return;
    struct deque_ring *first = first_ring(deque);
    store_release(&deque->ring, first); /* pairs with take_oldest */
    deque->limit = head + first->mask + 1;
    for (struct deque_ring *ring = first->larger; ring != NULL; ring = ring->larger)
        give_back_slots(ring);
}

/* head has moved since `limit` was set, or the ring is really full and grows. */
bool deque_push_slow(struct deque *deque, struct thrum_unit *unit) {
    /* Pairs with the cas of a thief: it has read its slot. */
    int64_t tail = load_relaxed(&deque->tail), head = load_acquire(&deque->head);
    struct deque_ring *ring = deque->ring;
    if (ring == NULL) /* a solo worker's, which has no room */
        return false;
    if (tail - head > ring->mask) {
        struct deque_ring *larger = larger_ring(ring);
        if (larger == NULL)
            return false;
        for (int64_t i = head; i < tail; i++)
            larger->slots[i & larger->mask] = load_relaxed(&ring->slots[i & ring->mask]);
        store_release(&deque->ring, larger); /* pairs with steal's load: it sees the copies */
        ring = larger;
    }
    deque->limit = head + ring->mask + 1;
    return deque_push(deque, unit);
}

static void look_for_thieves(struct deque *deque) {
    int64_t head = load_relaxed(&deque->head);
    uint32_t unlocked = 0;
    if (head != deque->calm_head) {
        deque->calm_head = head;
        deque->calm = DEQUE_CALM;
    } else if (--deque->calm <= 0 && !deque->always_shared && cas_acquire(&deque->changing, &unlocked, 1)) {
        store_relaxed(&deque->shared, 0);
        store_release(&deque->changing, 0);
    }
}

/* tail has been lowered to `last`. */
struct thrum_unit *deque_pop_shared(struct deque *deque, int64_t last) {
    fence_seq_cst();         /* pairs with take_oldest's: tail is lowered before head is read */
    look_for_thieves(deque); /* the mode may change: for the next pop */
    int64_t head = load_relaxed(&deque->head);
    struct thrum_unit *unit = NULL;
    if (head <= last) {
        unit = load_relaxed(&deque->ring->slots[last & deque->ring->mask]);
        if (head < last)
            return unit;
        if (!cas_seq_cst(&deque->head, &head, head + 1)) /* pairs with take_oldest's */
            unit = NULL;                                 /* a thief has the last one */
        else
            deque->calm_head++; /* not a theft */
    }
    store_relaxed(&deque->tail, last + 1);
    return unit;
}

static struct thrum_unit *take_oldest(struct deque *deque) {
    int64_t head = load_acquire(&deque->head); /* pairs with the others' cas; before tail, see the fence */
    fence_seq_cst();                           /* pairs with deque_pop_shared's: head is read before tail */
    if (head >= load_acquire(&deque->tail))    /* pairs with deque_push: the slot is there */
        return NULL;
    /* Pairs with deque_push_slow and deque_shrink_slow. */
    struct deque_ring *ring = load_acquire(&deque->ring);
    struct thrum_unit *unit = load_relaxed(&ring->slots[head & ring->mask]);
    /* Pairs with the others', and with the loads of head that are followed by a write to its slot. */
    return cas_seq_cst(&deque->head, &head, head + 1) ? unit : NULL;
}

struct thrum_unit *deque_steal(struct deque *deque) {
    if (deque->always_shared)
        return take_oldest(deque);
    uint32_t unlocked = 0;
    if (!cas_acquire(&deque->changing, &unlocked, 1)) /* pairs with the stores of 0 */
        return NULL;                                  /* another thief: it takes what there is */
    if (!load_relaxed(&deque->shared)) {
        store_relaxed(&deque->shared, 1);
        membarrier_expedited();
    }
    struct thrum_unit *unit = take_oldest(deque);
    store_release(&deque->changing, 0); /* pairs with the next thief's cas, and look_for_thieves' */
    return unit;
}
