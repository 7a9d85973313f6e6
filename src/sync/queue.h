// SPDX-License-Identifier: Apache-2.0
/* A word and a list of waiters: what most synchronisation objects are made of. */
#ifndef THRUM_SYNC_QUEUE_H
#define THRUM_SYNC_QUEUE_H

#include "base/inside.h"
#include "sync/waiters.h"
#include "sync/word.h"

struct queue {
    uint32_t word; /* first: thrum/sync.h's static initialisers set it */
    uint32_t spare;
    struct waiters waiters; /* under SPIN */
};

/* The next value of `word`, with SPIN given back. */
static inline uint32_t queue_word(const struct queue *queue, uint32_t word) {
    return queue->waiters.first != NULL ? word | WORD_WAITERS : word & ~(uint32_t)WORD_WAITERS;
}

/* The caller has SPIN, which this gives back: it waits in the list until it is claimed and woken. False: the deadline
 * came first, and it is off the list. `worker` may be another one when this returns. `kind`: what the queue is part of,
 * and begins. */
INSIDE bool queue_wait(struct worker *worker, struct queue *queue, enum awaits kind, uint32_t word,
                       uint64_t deadline);

/* A waiter that gives up, or that another object has woken, takes its node off, unless it has been dismissed. */
INSIDE void queue_leave(struct queue *queue, struct waiter *waiter);

#endif
