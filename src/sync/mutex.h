// SPDX-License-Identifier: Apache-2.0
/* The mutex, as the other objects see it.
 *
 * word:
 *   MUTEX_LOCKED     it is locked
 *   WORD_WAITERS     the list is not empty; legal only with LOCKED
 *   WORD_SPIN        word.h
 *   MUTEX_RECURSIVE  r/o: its owner may lock it again. Such a word is never 0, so that the fast path, which is for
 *                    plain ones, needs no test.
 *   MUTEX_PRIORITY   r/o: the list is in order of priority, then of age
 * An unlock with waiters hands over: LOCKED stays set, the first of the list owns it and is woken. So a mutex that
 * has waiters is never free, and no waiter is woken to find it taken. (Only waiters whose deadlines have just come
 * can make an unlock find none; then they are dismissed, and it is free.)
 *
 * A signalled waiter of a condition variable moves to this list and is not woken before it owns the mutex ("wait
 * morphing", after nsync's mu.c). */
#ifndef THRUM_SYNC_MUTEX_H
#define THRUM_SYNC_MUTEX_H

#include "base/inside.h"
#include "base/misuse.h"
#include "sync/queue.h"
#include "thrum/sync.h"

enum { MUTEX_LOCKED = 1, MUTEX_RECURSIVE = 8, MUTEX_PRIORITY = 16 };

struct mutex {
    union {
        struct queue queue;
        struct {
            uint32_t word, depth; /* the owner's: how often it has it, less one */
        };
    };
    /* Written by the thread that hands over or takes the mutex, read by all. Where not owner_is_kept it is for
     * src/inspect alone: the owner of a plain mutex writes it after having locked it, so another thread or none may
     * stand there before. */
    struct thrum_unit *owner;
};

_Static_assert(sizeof(struct mutex) <= sizeof(thrum_mutex_t), "thrum/sync.h leaves room for it");

static inline struct mutex *mutex_of(thrum_mutex_t *mutex) {
    return (struct mutex *)(void *)mutex;
}

static inline bool owner_is_kept(uint32_t word) {
    return MISUSE_IS_WATCHED || word & MUTEX_RECURSIVE;
}

/* Gives `chain`, whose waiters are claimed, their place in the list, and makes the chain empty.
 * If the mutex is free the first owns it, and is returned: the caller must wake it. */
INSIDE struct waiter *mutex_adopt(struct mutex *mutex, struct waiters *chain);

/* Likewise for one alone. True: it owns the mutex, and the caller must wake it. */
INSIDE bool mutex_adopt_one(struct mutex *mutex, struct waiter *waiter);

/* The caller, which owns it, makes the unit its owner. */
INSIDE void mutex_give(struct mutex *mutex, struct thrum_unit *unit);

/* The waiter's unit has announced itself. False: the mutex is free, and the waiter is not in the list. */
INSIDE bool mutex_enlist(struct mutex *mutex, struct waiter *waiter);

/* Where the owner is kept; else whether it is locked. */
INSIDE bool mutex_is_callers(struct worker *worker, const struct mutex *mutex);

/* `worker` may be another one when these return. Lock: 0, ETIMEDOUT or EDEADLK; `is_point`: the caller calls
 * cancel_act_of_lock with that. Unlock: 0 or EPERM. */
INSIDE int mutex_lock_inside(struct worker *worker, struct mutex *mutex, uint64_t deadline, bool is_point);
INSIDE int mutex_unlock_inside(struct worker *worker, struct mutex *mutex);

#endif
