// SPDX-License-Identifier: Apache-2.0
/* The channel: elements of one size go from senders to receivers, in order, through a store that may have no
 * capacity.
 *
 * word: CHANNEL_CLOSED; CHANNEL_CLOSING: a thread closes it, others stay out until that is done; WORD_SPIN.
 * Invariants, outside SPIN: receivers wait only where the store is empty and no sender waits, senders only where it
 *   is full; no thread waits where it is closed.
 * Linearization. Each operation: its last store of word. A waiter's: the store of the waker that claims it, which has
 *   copied the element from or to where the waiter wants it: a channel's waiter has that in `value`, NULL for a
 *   receiver that discards it.
 *
 * The store of CHANNEL_CLOSED is the last that the closing thread does to the object, so a receiver that sees it may
 * destroy the object. That is why the waiters are claimed before: in CLOSING, where they are many and some are
 * contested.
 *
 * Modelled in tests/model/channel.pml. */
#ifndef THRUM_SYNC_CHANNEL_H
#define THRUM_SYNC_CHANNEL_H

#include "base/inside.h"
#include "base/misuse.h"
#include "sync/store.h"
#include "sync/waiters.h"
#include "thrum/sync.h"

enum { CHANNEL_CLOSED = 1, CHANNEL_CLOSING = 8 };

struct channel {
    struct store store; /* first: THRUM_CHANNEL_INITIALIZER */
    uint32_t word;
    uint32_t spare;
    struct waiters senders, receivers; /* under SPIN */
};

_Static_assert(sizeof(struct channel) <= sizeof(thrum_channel_t), "thrum/sync.h leaves room for it");
_Static_assert(offsetof(struct store, ring) == offsetof(thrum_channel_t, storage) &&
                   offsetof(struct store, capacity) == offsetof(thrum_channel_t, capacity) &&
                   offsetof(struct store, size) == offsetof(thrum_channel_t, element_size),
               "THRUM_CHANNEL_INITIALIZER");

static inline struct channel *channel_of(thrum_channel_t *channel) {
    return (struct channel *)(void *)channel;
}

/* Takes SPIN, and comes inside. The word: open or closed, nothing in between. */
ENTERS uint32_t channel_lock(struct channel *channel);
/* Gives it back, goes outside. */
LEAVES void channel_unlock(struct channel *channel, uint32_t word);

/* As queue_leave: also in the middle of closing. */
INSIDE void channel_leave(struct channel *channel, struct waiters *list, struct waiter *waiter);

/* With SPIN. Would the operation complete at once? */
static inline bool channel_may_send(const struct channel *channel, uint32_t word) {
    return word & CHANNEL_CLOSED || !store_is_full(&channel->store) || channel->receivers.first != NULL;
}

static inline bool channel_may_receive(const struct channel *channel, uint32_t word) {
    return word & CHANNEL_CLOSED || channel->store.count > 0 || channel->senders.first != NULL;
}

#endif
