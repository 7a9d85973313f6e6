// SPDX-License-Identifier: Apache-2.0
/* Readers-writer locks. Readers come in while writers wait, so a reader may lock again. */
#include <stdlib.h>

#include "direct.h"
#include "objects.h"

enum { READS, WRITES };

struct rwlock {
    struct abt_spin lock;
    uint32_t readers; /* that have it; under lock, as the next */
    bool is_written;
    struct abt_waitlist readers_waiting, writers_waiting;
};

static struct rwlock *rwlock_of(ABT_rwlock handle) {
    return (struct rwlock *)(void *)handle;
}

ABT_EXPORT int ABT_rwlock_create(ABT_rwlock *newrwlock) {
    struct rwlock *lock = calloc(1, sizeof *lock);
    *newrwlock = ABT_RWLOCK_NULL;
    ABT_CHECK(lock != NULL, ABT_ERR_MEM);
    *newrwlock = (ABT_rwlock)(void *)lock;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_rwlock_free(ABT_rwlock *handle) {
    ABT_CHECK_HANDLE(*handle, ABT_ERR_INV_RWLOCK);
    object_drain(&rwlock_of(*handle)->lock);
    free(*handle);
    *handle = ABT_RWLOCK_NULL;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_rwlock_rdlock(ABT_rwlock handle) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_RWLOCK);
    NO_TASKLET(ABT_ERR_RWLOCK);
    struct rwlock *lock = rwlock_of(handle);
    abt_lock(&lock->lock);
    if (lock->is_written) {
        abt_wait_in(&lock->readers_waiting, &lock->lock);
        return ABT_SUCCESS;
    }
    lock->readers++;
    abt_unlock(&lock->lock);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_rwlock_wrlock(ABT_rwlock handle) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_RWLOCK);
    NO_TASKLET(ABT_ERR_RWLOCK);
    struct rwlock *lock = rwlock_of(handle);
    abt_lock(&lock->lock);
    if (lock->is_written || lock->readers > 0) {
        abt_wait_in(&lock->writers_waiting, &lock->lock);
        return ABT_SUCCESS;
    }
    lock->is_written = true;
    abt_unlock(&lock->lock);
    return ABT_SUCCESS;
}

/* It is free of a writer, or of a reader: the waiters that get it now, which are all readers, or else one writer. */
static struct abt_waiter *hand_over_locked(struct rwlock *lock) {
    struct abt_waiter *first = lock->readers_waiting.first;
    for (const struct abt_waiter *reader = first; reader != NULL; reader = reader->next)
        lock->readers++;
    lock->readers_waiting.first = NULL;
    if (lock->readers > 0)
        return first;
    first = abt_waitlist_take(&lock->writers_waiting);
    if (first != NULL)
        first->next = NULL;
    lock->is_written = first != NULL;
    return first;
}

ABT_EXPORT int ABT_rwlock_unlock(ABT_rwlock handle) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_RWLOCK);
    struct rwlock *lock = rwlock_of(handle);
    abt_lock(&lock->lock);
    if (lock->is_written)
        lock->is_written = false;
    else
        lock->readers--;
    struct abt_waiter *woken = hand_over_locked(lock);
    abt_unlock(&lock->lock);
    abt_wake_all(woken);
    return ABT_SUCCESS;
}
