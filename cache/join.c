// SPDX-License-Identifier: Apache-2.0
/* Joining and detaching, POSIX and C11. Threads that are not ours go to libc. */
#include <errno.h>
#include <stdint.h>
#include <threads.h>
#include <time.h>

#include "cache.h"

static struct kthread *ours(pthread_t handle) {
    return kthread_of_sigsafe(handle);
}

/* Before a thread of ours waits for one of libc's: libc would see the two wait for each other, but does not know the
 * joiners of ours. */
static bool foreign_deadlock(pthread_t handle) {
    struct kthread *self = kthread_self_sigsafe();
    /* Pairs with the cas in kthread_join. */
    return self != NULL && !skipped(ROW_JOIN) && load_acquire(&self->joiner) == handle;
}

static void foreign_wait(pthread_t handle) {
    struct kthread *self = kthread_self_sigsafe();
    if (self != NULL)
        store_relaxed(&self->joins, handle);
}

INTERPOSE int pthread_join(pthread_t handle, void **result) {
    struct kthread *thread = ours(handle);
    if (thread != NULL)
        return kthread_join(thread, result, KTHREAD_JOIN_WAIT, CLOCK_MONOTONIC, NULL);
    if (foreign_deadlock(handle))
        return EDEADLK;
    foreign_wait(handle);
    int error = REAL(pthread_join)(handle, result);
    foreign_wait(0);
    return error;
}

INTERPOSE int pthread_tryjoin_np(pthread_t handle, void **result) {
    struct kthread *thread = ours(handle);
    if (thread == NULL)
        return REAL(pthread_tryjoin_np)(handle, result);
    return kthread_join(thread, result, KTHREAD_JOIN_TRY, CLOCK_MONOTONIC, NULL);
}

INTERPOSE int pthread_timedjoin_np(pthread_t handle, void **result, const struct timespec *deadline) {
    struct kthread *thread = ours(handle);
    if (thread == NULL)
        return REAL(pthread_timedjoin_np)(handle, result, deadline);
    return kthread_join(thread, result, KTHREAD_JOIN_WAIT, CLOCK_REALTIME, deadline);
}

INTERPOSE int pthread_clockjoin_np(pthread_t handle, void **result, clockid_t clock,
                                   const struct timespec *deadline) {
    struct kthread *thread = ours(handle);
    if (thread == NULL)
        return REAL(pthread_clockjoin_np)(handle, result, clock, deadline);
    if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
        return EINVAL;
    return kthread_join(thread, result, KTHREAD_JOIN_WAIT, clock, deadline);
}

INTERPOSE int pthread_detach(pthread_t handle) {
    struct kthread *thread = ours(handle);
    return thread != NULL ? kthread_detach(thread) : REAL(pthread_detach)(handle);
}

/* --- C11 ---------------------------------------------------------------------------------------------- */

INTERPOSE int thrd_join(thrd_t handle, int *result) {
    void *value = NULL;
    int error = pthread_join(handle, &value);
    if (error == 0 && result != NULL)
        *result = (int)(intptr_t)value;
    return c11_error(error);
}

INTERPOSE int thrd_detach(thrd_t handle) {
    return c11_error(pthread_detach(handle));
}
