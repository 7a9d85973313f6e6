// SPDX-License-Identifier: Apache-2.0
/* Condition variables. Its waiters all have the same mutex. */
#include <stdlib.h>

#include "direct.h"
#include "objects.h"

struct cond {
    struct abt_spin lock;
    struct abt_waitlist list; /* under lock, as the next */
    ABT_mutex mutex;          /* of those in the list */
};
_Static_assert(sizeof(struct cond) <= OBJECT_BODY, "");

static struct cond *cond_of(ABT_cond handle) {
    return object_body(handle);
}

ABT_EXPORT int ABT_cond_create(ABT_cond *newcond) {
    void *memory = calloc(1, OBJECT_SIZE);
    *newcond = ABT_COND_NULL;
    ABT_CHECK(memory != NULL, ABT_ERR_MEM);
    *newcond = memory;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_cond_free(ABT_cond *handle) {
    ABT_CHECK_HANDLE(*handle, ABT_ERR_INV_COND);
    struct cond *cond = cond_of(*handle);
    abt_lock(&cond->lock);
    bool is_free = cond->list.first == NULL;
    abt_unlock(&cond->lock);
    ABT_CHECK(is_free, ABT_ERR_COND);
    free(*handle);
    *handle = ABT_COND_NULL;
    return ABT_SUCCESS;
}

/* In the list before the mutex is free: a signal that comes then is not lost. */
/* Unchecked, as abt_wait_in. */
INSIDE_UNCHECKED static inline __attribute__((always_inline)) int
wait_until(struct cond *cond, ABT_mutex mutex, uint64_t deadline) {
    struct abt_waiter waiter;
    abt_lock(&cond->lock);
    if (cond->list.first != NULL && cond->mutex != mutex) {
        abt_unlock(&cond->lock);
        return ABT_ERR_INV_MUTEX;
    }
    cond->mutex = mutex;
    abt_wait_begin(&waiter);
    abt_waitlist_add(&cond->list, &waiter);
    abt_unlock(&cond->lock);
    abt_mutex_unlock(mutex);
    bool was_signalled = true;
    if (deadline == TIMER_NEVER)
        abt_wait(&waiter);
    else
        was_signalled = abt_wait_until(&waiter, &cond->list, &cond->lock, deadline);
    abt_mutex_lock(mutex);
    return was_signalled ? ABT_SUCCESS : ABT_ERR_COND_TIMEDOUT;
}

ABT_EXPORT int ABT_cond_wait(ABT_cond cond, ABT_mutex mutex) {
    NO_TASKLET(ABT_ERR_COND);
    ABT_CHECK_HANDLE(cond, ABT_ERR_INV_COND);
    ABT_CHECK_HANDLE(mutex, ABT_ERR_INV_MUTEX);
    return wait_until(cond_of(cond), mutex, TIMER_NEVER);
}

ABT_EXPORT int ABT_cond_timedwait(ABT_cond cond, ABT_mutex mutex, const struct timespec *abstime) {
    ABT_CHECK_HANDLE(cond, ABT_ERR_INV_COND);
    ABT_CHECK_HANDLE(mutex, ABT_ERR_INV_MUTEX);
    return wait_until(cond_of(cond), mutex, abt_deadline_real(abstime));
}

ABT_EXPORT int ABT_cond_signal(ABT_cond handle) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_COND);
    struct cond *cond = cond_of(handle);
    abt_lock(&cond->lock);
    struct abt_waiter *waiter = abt_waitlist_take(&cond->list);
    abt_unlock(&cond->lock);
    if (waiter != NULL)
        abt_wake(waiter);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_cond_broadcast(ABT_cond handle) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_COND);
    struct cond *cond = cond_of(handle);
    abt_lock(&cond->lock);
    abt_unlock_and_wake_all(&cond->lock, &cond->list);
    return ABT_SUCCESS;
}
