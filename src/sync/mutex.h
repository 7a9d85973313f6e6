// SPDX-License-Identifier: Apache-2.0
/* The mutex, as the other objects see it.
 *
 * word:
 *   MUTEX_LOCKED   somebody has it
 *   MUTEX_WAITERS  the list is not empty; legal only with LOCKED
 *   MUTEX_SPIN     somebody changes the list; nobody else touches word or list until it is gone. Held for a few
 *                  instructions, in a non-preemptible region.
 * An unlock with waiters hands over: LOCKED stays set, the first of the list owns it and is woken. So a mutex that has
 * waiters is never free, and nobody is woken to find it taken.
 *
 * The list is linked through the units (a unit waits in one place). After Finding "wait morphing" and nsync's mu. */
#ifndef THRUM_SYNC_MUTEX_H
#define THRUM_SYNC_MUTEX_H

#include <stdint.h>

#include "sched/unit.h"
#include "thrum/thrum.h"

enum { MUTEX_LOCKED = 1, MUTEX_WAITERS = 2, MUTEX_SPIN = 4 };

struct mutex {
    uint32_t word;
    struct thrum_unit *first, *last; /* under SPIN; good only with WAITERS */
};

_Static_assert(sizeof(struct mutex) <= sizeof(thrum_mutex_t), "thrum.h leaves room for it");

static inline struct mutex *mutex_of(thrum_mutex_t *mutex) {
    return (struct mutex *)(void *)mutex;
}

/* True: `unit` owns it now. False: it is in the list and will be woken as the owner. It has announced itself. */
bool mutex_own_or_wait(struct mutex *mutex, struct thrum_unit *unit);

void mutex_unlock_slow(struct worker *worker, struct mutex *mutex);

#endif
