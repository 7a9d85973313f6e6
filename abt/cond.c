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
static inline __attribute__((always_inline)) uint64_t wait_until(struct cond *cond, ABT_mutex mutex,
                                                                 uint64_t deadline, const void *place) {
    struct abt_waiter waiter;
    abt_lock(&cond->lock);
    if (cond->list.first != NULL && cond->mutex != mutex) {
        abt_unlock(&cond->lock);
        return ABT_ERR_INV_MUTEX;
    }
    cond->mutex = mutex;
    abt_wait_begin_here(worker_here(), &waiter);
    abt_waitlist_add(&cond->list, &waiter);
    abt_spin_release(&cond->lock);
    abt_mutex_unlock(mutex);
    bool was_signalled = true, jumps = false;
    if (deadline == TIMER_NEVER)
        jumps = !abt_wait_from(&waiter, place);
    else
        was_signalled = abt_wait_until(&waiter, &cond->list, &cond->lock, deadline);
    abt_mutex_lock(mutex);
    return arch_return(was_signalled ? ABT_SUCCESS : ABT_ERR_COND_TIMEDOUT, jumps);
}

static ARCH_CALLED_BY_NAME uint64_t cond_wait(ABT_cond cond, ABT_mutex mutex, const void *place) {
    NO_TASKLET(ABT_ERR_COND);
    ABT_CHECK_HANDLE(cond, ABT_ERR_INV_COND);
    ABT_CHECK_HANDLE(mutex, ABT_ERR_INV_MUTEX);
    return wait_until(cond_of(cond), mutex, TIMER_NEVER, place);
}
ARCH_RETURN_BY_PLACE(ABT_EXPORT int, ABT_cond_wait, (ABT_cond cond, ABT_mutex mutex), cond_wait, cond, mutex)

ABT_EXPORT int ABT_cond_timedwait(ABT_cond cond, ABT_mutex mutex, const struct timespec *abstime) {
    ABT_CHECK_HANDLE(cond, ABT_ERR_INV_COND);
    ABT_CHECK_HANDLE(mutex, ABT_ERR_INV_MUTEX);
    return (int)(uint32_t)wait_until(cond_of(cond), mutex, abt_deadline_real(abstime), NULL);
}

ABT_EXPORT int ABT_cond_signal(ABT_cond handle) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_COND);
    struct cond *cond = cond_of(handle);
    abt_lock(&cond->lock);
    abt_unlock_and_wake(&cond->lock, abt_waitlist_take(&cond->list));
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_cond_broadcast(ABT_cond handle) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_COND);
    struct cond *cond = cond_of(handle);
    abt_lock(&cond->lock);
    abt_unlock_and_wake_all(&cond->lock, &cond->list);
    return ABT_SUCCESS;
}
