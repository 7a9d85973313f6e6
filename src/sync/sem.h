// SPDX-License-Identifier: Apache-2.0
/* The counting semaphore.
 *
 * word: the permits from bit SEM_SHIFT on, WORD_WAITERS, WORD_SPIN. While a thread waits there is no permit: a post
 * gives its permits to the longest waiters, and only what is left is counted.
 * Linearization. post: the cas or store of word, which is the last that it does to the object. wait: the cas that
 *   takes a permit, or the store that lists the waiter. */
#ifndef THRUM_SYNC_SEM_H
#define THRUM_SYNC_SEM_H

#include "base/misuse.h"
#include "sync/queue.h"
#include "thrum/sync.h"

enum { SEM_SHIFT = 3, SEM_ONE = 1 << SEM_SHIFT };

struct sem {
    struct queue queue;
};

_Static_assert(sizeof(struct sem) <= sizeof(thrum_sem_t), "thrum/sync.h leaves room for it");
_Static_assert(THRUM_SEM_MAX == UINT32_MAX >> SEM_SHIFT, "thrum/sync.h");

static inline struct sem *sem_of(thrum_sem_t *sem) {
    return (struct sem *)(void *)sem;
}

/* True: the caller has one. From inside and outside. */
bool sem_take(struct sem *sem);

#endif
