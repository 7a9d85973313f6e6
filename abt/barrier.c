// SPDX-License-Identifier: Apache-2.0
/* Barriers, of threads and of streams. In that of streams anything may wait. */
#include <stdlib.h>

#include "direct.h"
#include "objects.h"

struct barrier {
    struct abt_spin lock;
    uint32_t count, arrived; /* under lock */
    struct abt_waitlist list;
};

static struct barrier *new_barrier(uint32_t count) {
    struct barrier *barrier = calloc(1, sizeof *barrier);
    if (barrier != NULL)
        barrier->count = count;
    return barrier;
}

/* The last one wakes the others, and the barrier is as before. */
static void arrive(struct barrier *barrier) {
    abt_lock(&barrier->lock);
    if (++barrier->arrived < barrier->count) {
        abt_wait_in(&barrier->list, &barrier->lock);
        return;
    }
    barrier->arrived = 0;
    abt_unlock_and_wake_all(&barrier->lock, &barrier->list);
}

static void delete (struct barrier *barrier) {
    object_drain(&barrier->lock);
    free(barrier);
}

static struct barrier *barrier_of(ABT_barrier handle) {
    return (struct barrier *)(void *)handle;
}

ABT_EXPORT int ABT_barrier_create(uint32_t num_waiters, ABT_barrier *newbarrier) {
    *newbarrier = ABT_BARRIER_NULL;
    ABT_CHECK(num_waiters > 0, ABT_ERR_INV_ARG);
    struct barrier *barrier = new_barrier(num_waiters);
    ABT_CHECK(barrier != NULL, ABT_ERR_MEM);
    *newbarrier = (ABT_barrier)(void *)barrier;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_barrier_reinit(ABT_barrier barrier, uint32_t num_waiters) {
    ABT_CHECK_HANDLE(barrier, ABT_ERR_INV_BARRIER);
    ABT_CHECK(num_waiters > 0, ABT_ERR_INV_ARG);
    abt_lock(&barrier_of(barrier)->lock);
    barrier_of(barrier)->count = num_waiters;
    abt_unlock(&barrier_of(barrier)->lock);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_barrier_free(ABT_barrier *barrier) {
    ABT_CHECK_HANDLE(*barrier, ABT_ERR_INV_BARRIER);
    delete (barrier_of(*barrier));
    *barrier = ABT_BARRIER_NULL;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_barrier_wait(ABT_barrier barrier) {
    ABT_CHECK_HANDLE(barrier, ABT_ERR_INV_BARRIER);
    NO_TASKLET(ABT_ERR_BARRIER);
    arrive(barrier_of(barrier));
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_barrier_get_num_waiters(ABT_barrier barrier, uint32_t *num_waiters) {
    ABT_CHECK_HANDLE(barrier, ABT_ERR_INV_BARRIER);
    *num_waiters = load_relaxed(&barrier_of(barrier)->count);
    return ABT_SUCCESS;
}

static struct barrier *stream_barrier_of(ABT_xstream_barrier handle) {
    return (struct barrier *)(void *)handle;
}

ABT_EXPORT int ABT_xstream_barrier_create(uint32_t num_waiters, ABT_xstream_barrier *newbarrier) {
    *newbarrier = ABT_XSTREAM_BARRIER_NULL;
    ABT_CHECK(num_waiters > 0, ABT_ERR_INV_ARG);
    struct barrier *barrier = new_barrier(num_waiters);
    ABT_CHECK(barrier != NULL, ABT_ERR_MEM);
    *newbarrier = (ABT_xstream_barrier)(void *)barrier;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_xstream_barrier_free(ABT_xstream_barrier *barrier) {
    ABT_CHECK_HANDLE(*barrier, ABT_ERR_INV_XSTREAM_BARRIER);
    delete (stream_barrier_of(*barrier));
    *barrier = ABT_XSTREAM_BARRIER_NULL;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_xstream_barrier_wait(ABT_xstream_barrier barrier) {
    ABT_CHECK_HANDLE(barrier, ABT_ERR_INV_XSTREAM_BARRIER);
    arrive(stream_barrier_of(barrier));
    return ABT_SUCCESS;
}
