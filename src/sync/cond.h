// SPDX-License-Identifier: Apache-2.0
/* The condition variable, as thrum_wait_any and thrum_spawn_when see it. */
#ifndef THRUM_SYNC_COND_H
#define THRUM_SYNC_COND_H

#include "sync/mutex.h"

struct cond {
    struct queue queue;  /* word: nothing of its own */
    struct mutex *mutex; /* under SPIN; the waiters' */
};

_Static_assert(sizeof(struct cond) <= sizeof(thrum_cond_t), "thrum/sync.h leaves room for it");

/* The caller owns the mutex, and unlocks it when the waiter is listed: a signal by the next owner finds the waiter. A signal
 * that comes first moves the waiter to the mutex, which that unlock hands to it. The waiter's unit has announced itself. */
INSIDE void cond_enlist(struct worker *worker, struct cond *cond, struct mutex *mutex, struct waiter *waiter);

#endif
