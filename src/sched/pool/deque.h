// SPDX-License-Identifier: Apache-2.0
/* A worker's run queue: the owner pushes and pops at the tail (newest first), thieves take at the head (oldest
 * first). Chase and Lev's deque in the form of Lê, Pop, Cohen and Zappa Nardelli ("Correct and efficient
 * work-stealing for weak memory models", PPoPP 2013). Its one fence on the owner's path is left out while no thread
 * steals.
 *
 * Representation. Entries are slots[head .. tail) of a ring whose size is a power of two; head and tail only grow,
 *   but for the owner's tentative decrement of tail. A full ring is replaced by one of twice the size; the old one
 *   stays mapped until the deque's end, since a thief may still be reading it: what it reads there it can only keep if
 *   its cas on `head` succeeds, and an entry that is still in [head, tail) is the same in both. There is one ring of
 *   each size, which is used again. When all is empty the owner may go back to the first one, and give the memory of
 *   the others to the kernel: a thief that has read head before then finds that it has moved, for the last entry is
 *   taken by a cas on head wherever a thief is at work.
 * Callers. push, pop, pop_oldest, shrink: the owner, in a non-preemptible region. steal: any other kernel thread.
 *   is_empty: any thread.
 * Linearization. push: the store to tail. pop: the store to tail; in shared mode, of the last entry, the cas on head.
 *   steal, pop_oldest: the cas on head. The cas on head also rules out ABA: head never goes back.
 *
 * The fence. Owner: lowers tail, then reads head. Thief: reads head, then tail. Without a full fence on both sides
 *   both can miss the other's write and take the same entry. So there are two modes:
 *     shared == 0  the owner has no fence, and takes the last entry as any other: no thread is stealing. A thief first
 *                  takes `changing`, sets shared, and runs membarrier(2), after which the owner has either seen
 *                  `shared` or had its earlier store of tail made visible, so that the thief does not find what was
 *                  popped; and every later pop has its fence. Then it steals.
 *     shared == 1  both fence.
 *   The owner goes back to 0 when CALM pops in a row met no theft, under `changing`: a thief that holds it has the
 *   mode pinned until its steal is over. Where the kernel has no membarrier, shared is always 1.
 *   The read of `shared` comes after the store of tail in program order (a compiler barrier); membarrier makes that
 *   order hold against the thief. With the read first, a pop could slip through the change of mode unfenced.
 *
 * Checked by the loom model in tests/model/deque and by tests/unit/ult/deque_test.cpp. */
#ifndef THRUM_SCHED_POOL_DEQUE_H
#define THRUM_SCHED_POOL_DEQUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/inside.h"

struct thrum_unit;

struct deque_ring {
    int64_t mask;                        /* r/o */
    struct deque_ring *smaller, *larger; /* of half and of twice the size; NULL: none yet */
    struct thrum_unit *slots[];
};

struct deque {
    /* the owner's */
    _Alignas(128) int64_t tail;
    int64_t limit; /* tail may grow up to here before head must be looked at again */
    struct deque_ring *ring;
    int64_t calm_head; /* head when a theft was last noticed */
    int32_t calm;      /* pops without one that are still needed */
    /* the thieves' */
    _Alignas(128) int64_t head;
    _Alignas(128) uint32_t shared;
    uint32_t changing;  /* 1: held, and so the mode; its store of 0 pairs with the cas of the next holder */
    bool always_shared; /* r/o */
};

enum { DEQUE_SIZE_AT_FIRST = 256, DEQUE_SIZE_KEPT = 65536, DEQUE_CALM = 256 };

/* 0 or ENOMEM. `fenced`: the process cannot use membarrier. */
int deque_init(struct deque *deque, bool fenced);
void deque_destroy(struct deque *deque);

/* False: it is full and the kernel gives no memory for a larger one. */
INSIDE bool deque_push_slow(struct deque *deque, struct thrum_unit *unit);
INSIDE struct thrum_unit *deque_pop_shared(struct deque *deque, int64_t last);
SIGSAFE struct thrum_unit *deque_steal(struct deque *deque);

/* After a burst: where it is empty and has more than DEQUE_SIZE_KEPT slots, their memory goes back to the kernel. */
INSIDE void deque_shrink_slow(struct deque *deque);

INSIDE static inline bool deque_push(struct deque *deque, struct thrum_unit *unit) {
    int64_t tail = load_relaxed(&deque->tail);
    if (__builtin_expect(tail >= deque->limit, 0))
        return deque_push_slow(deque, unit);
    store_relaxed(&deque->ring->slots[tail & deque->ring->mask], unit);
    store_release(&deque->tail, tail + 1); /* pairs with steal's load: it sees the slot */
    return true;
}

INSIDE static inline struct thrum_unit *deque_pop(struct deque *deque) {
    int64_t last = load_relaxed(&deque->tail) - 1;
    if (last < load_relaxed(&deque->head))
        return NULL; /* head only grows: no fence is needed to know that it is empty */
    store_relaxed(&deque->tail, last);
    /* Pairs with the thief's membarrier (deque_steal): tail is lowered before `shared` is read. */
    fence_compiler();
    if (__builtin_expect(load_relaxed(&deque->shared), 0))
        return deque_pop_shared(deque, last);
    return load_relaxed(&deque->ring->slots[last & deque->ring->mask]);
}

/* The oldest entry, for the owner. The cas on head arbitrates with thieves; only the owner writes tail. */
INSIDE static inline struct thrum_unit *deque_pop_oldest(struct deque *deque) {
    int64_t head = load_acquire(&deque->head); /* this and the next pair with take_oldest's cas */
    if (head >= load_relaxed(&deque->tail))
        return NULL;
    struct thrum_unit *unit = load_relaxed(&deque->ring->slots[head & deque->ring->mask]);
    if (!cas_seq_cst(&deque->head, &head, head + 1))
        return NULL;
    deque->calm_head++; /* not a theft */
    return unit;
}

static inline bool deque_is_empty(const struct deque *deque) {
    return load_relaxed(&deque->tail) <= load_relaxed(&deque->head);
}

INSIDE static inline void deque_shrink(struct deque *deque) {
    if (__builtin_expect(deque->ring->mask >= DEQUE_SIZE_KEPT, 0))
        deque_shrink_slow(deque);
}

#endif
