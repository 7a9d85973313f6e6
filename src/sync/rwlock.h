// SPDX-License-Identifier: Apache-2.0
/* The readers-writer lock's representation. What it does: rwlock.c.
 *
 * word: RWLOCK_WRITING, or the number of readers from bit RWLOCK_SHIFT on; WORD_WAITERS: one of the two lists is not
 *   empty, so new readers may not just come in; WORD_SPIN. */
#ifndef THRUM_SYNC_RWLOCK_H
#define THRUM_SYNC_RWLOCK_H

#include "base/inside.h"
#include "sync/waiters.h"
#include "sync/word.h"
#include "thrum/sync.h"

enum { RWLOCK_WRITING = 1, RWLOCK_SHIFT = 3, RWLOCK_READER = 1 << RWLOCK_SHIFT };

struct rwlock {
    uint32_t word;
    uint32_t spare;
    struct waiters readers, writers; /* under SPIN */
    struct thrum_unit
        /* written by the thread that hands it over or takes it; for checking misuse, and for src/inspect */
        *writer;
};

_Static_assert(sizeof(struct rwlock) <= sizeof(thrum_rwlock_t), "thrum/sync.h leaves room for it");

static inline struct rwlock *rwlock_of(thrum_rwlock_t *lock) {
    return (struct rwlock *)(void *)lock;
}

/* For thrum_wait_any. Enlist: false if it looks free, and the waiter is not in the list. Forget: takes an enlisted
 * waiter off, unless it was dismissed; the caller may be on another worker then. */
INSIDE bool rwlock_enlist(struct rwlock *lock, struct waiter *waiter, bool writes);
INSIDE void rwlock_forget(struct rwlock *lock, struct waiter *waiter, bool writes);

#endif
