// SPDX-License-Identifier: Apache-2.0
/* What objects that may be static look like: 64 bytes at a multiple of 4. The first word is the attributes; the rest is at the
 * next multiple of 8. All of it is 0 at first. */
#ifndef ABT_OBJECTS_H
#define ABT_OBJECTS_H

#include "layer.h"

enum { OBJECT_SIZE = 64, OBJECT_BODY = 56 };

static inline void *object_body(const void *object) {
    return (void *)(((uintptr_t)object + 4 + 7) & ~(uintptr_t)7);
}

enum { MUTEX_IS_LOCKED = 1, MUTEX_HAS_WAITERS = 2, MUTEX_RECURSIVE = 1 };

struct mutex {
    uint32_t word;        /* MUTEX_IS_LOCKED, MUTEX_HAS_WAITERS */
    struct abt_spin lock; /* of the list, and of word while it has waiters */
    struct abt_waitlist list;
    const void *owner; /* recursive: its holder, as the next */
    uint32_t depth;
};
_Static_assert(sizeof(struct mutex) <= OBJECT_BODY, "");

/* Without a check of the handle. */
void abt_mutex_lock(ABT_mutex mutex);
/* ... whether a waiter was woken. */
bool abt_mutex_unlock(ABT_mutex mutex);

/* A tasklet may not wait for this object: what it is told. */
#define NO_TASKLET(error)                                                                                    \
    do {                                                                                                     \
        const struct abt_thread *caller = abt_self();                                                        \
        ABT_CHECK(caller == NULL || !abt_is_tasklet(caller), error);                                         \
    } while (0)

/* No thread is in a critical section of it any more, also if the caller has seen its result without the lock. */
static inline void object_drain(struct abt_spin *lock) {
    abt_lock(lock);
    abt_unlock(lock);
}

#endif
