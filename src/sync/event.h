// SPDX-License-Identifier: Apache-2.0
/* An event: it releases all its waiters when it is set. On its own it is thrum_event_t; latches, eventuals, futures
 * and once are events that are set when something else is done.
 *
 * word: EVENT_SET (then no thread waits and the list is empty), WORD_WAITERS, WORD_SPIN.
 * Linearization. set: the store (or cas) of EVENT_SET, which is the last that it does to the object, also where it is
 *   set already: a thread that sees it so from then on, or resets it, sees what this one did before. wait: the load
 *   that sees it, or the store that lists the waiter. */
#ifndef THRUM_SYNC_EVENT_H
#define THRUM_SYNC_EVENT_H

#include "base/misuse.h"
#include "sync/queue.h"
#include "thrum/sync.h"

enum { EVENT_SET = 1 };

struct event {
    struct queue queue;
};

_Static_assert(sizeof(struct event) <= sizeof(thrum_event_t), "thrum/sync.h leaves room for it");

static inline struct event *event_of(thrum_event_t *event) {
    return (struct event *)(void *)event;
}

static inline bool event_is_set(struct event *event) {
    bool set = load_acquire(&event->queue.word) & EVENT_SET; /* pairs with event_set: what was done before */
    if (set)
        annotate_happens_after(&event->queue.word);
    return set;
}

/* From outside. */
void event_set(struct event *event);
/* 0 or ETIMEDOUT. `kind`: what the event is part of, and begins. */
int event_wait(struct event *event, enum awaits kind, uint64_t deadline);

static inline bool event_has_waiters(const struct event *event) {
    return load_acquire(&event->queue.word) & WORD_WAITERS; /* pairs with word_unlock */
}

#endif
