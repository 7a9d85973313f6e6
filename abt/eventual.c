// SPDX-License-Identifier: Apache-2.0
/* Eventuals (a value that is set once, until it is reset) and futures (the same with compartments). */
#include <stdlib.h>
#include <string.h>

#include "direct.h"
#include "objects.h"

struct eventual {
    struct abt_spin lock;
    uint32_t is_ready; /* changed under lock; the store of 1 pairs with the loads: the value is there */
    struct abt_waitlist list;
    void *value;
    size_t size;
};
_Static_assert(sizeof(struct eventual) <= OBJECT_BODY, "");

static struct eventual *eventual_of(ABT_eventual handle) {
    return object_body(handle);
}

ABT_EXPORT int ABT_eventual_create(int nbytes, ABT_eventual *neweventual) {
    ABT_CHECK(nbytes >= 0, ABT_ERR_INV_ARG);
    *neweventual = ABT_EVENTUAL_NULL;
    void *memory = calloc(1, OBJECT_SIZE), *value = nbytes > 0 ? malloc((size_t)nbytes) : NULL;
    if (memory == NULL || (value == NULL && nbytes > 0)) {
        free(memory);
        free(value);
        return ABT_ERR_MEM;
    }
    *neweventual = memory;
    eventual_of(*neweventual)->value = value;
    eventual_of(*neweventual)->size = (size_t)nbytes;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_eventual_free(ABT_eventual *handle) {
    ABT_CHECK_HANDLE(*handle, ABT_ERR_INV_EVENTUAL);
    object_drain(&eventual_of(*handle)->lock);
    free(eventual_of(*handle)->value);
    free(*handle);
    *handle = ABT_EVENTUAL_NULL;
    return ABT_SUCCESS;
}

static ARCH_CALLED_BY_NAME uint64_t eventual_wait(ABT_eventual handle, void **value, const void *place) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_EVENTUAL);
    NO_TASKLET(ABT_ERR_EVENTUAL);
    struct eventual *eventual = eventual_of(handle);
    bool jumps = false;
    if (!load_acquire(&eventual->is_ready)) {
        abt_lock(&eventual->lock);
        if (eventual->is_ready)
            abt_unlock(&eventual->lock);
        else
            jumps = !abt_wait_in_from(&eventual->list, &eventual->lock, place);
    }
    if (value != NULL)
        *value = eventual->value;
    return arch_return(ABT_SUCCESS, jumps);
}
ARCH_RETURN_BY_PLACE(ABT_EXPORT int, ABT_eventual_wait, (ABT_eventual eventual, void **value), eventual_wait,
                     eventual, value)

static int wait_until(struct eventual *eventual, void **value, uint64_t deadline) {
    if (!load_acquire(&eventual->is_ready)) {
        abt_lock(&eventual->lock);
        if (eventual->is_ready)
            abt_unlock(&eventual->lock);
        else if (!abt_wait_in_until(&eventual->list, &eventual->lock, deadline))
            return ABT_ERR_COND_TIMEDOUT;
    }
    if (value != NULL)
        *value = eventual->value;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_eventual_timedwait(ABT_eventual eventual, void **value, const struct timespec *abstime) {
    ABT_CHECK_HANDLE(eventual, ABT_ERR_INV_EVENTUAL);
    NO_TASKLET(ABT_ERR_EVENTUAL);
    return wait_until(eventual_of(eventual), value, abt_deadline_real(abstime));
}

ABT_EXPORT int ABT_eventual_test(ABT_eventual handle, void **value, ABT_bool *is_ready) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_EVENTUAL);
    const struct eventual *eventual = eventual_of(handle);
    *is_ready = load_acquire(&eventual->is_ready) != 0;
    if (*is_ready && value != NULL)
        *value = eventual->value;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_eventual_set(ABT_eventual handle, void *value, int nbytes) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_EVENTUAL);
    ABT_CHECK(nbytes >= 0, ABT_ERR_INV_ARG);
    struct eventual *eventual = eventual_of(handle);
    ABT_CHECK((size_t)nbytes <= eventual->size, ABT_ERR_INV_EVENTUAL);
    abt_lock(&eventual->lock);
    if (eventual->is_ready) {
        abt_unlock(&eventual->lock);
        return ABT_ERR_EVENTUAL;
    }
    if (nbytes > 0)
        memcpy(eventual->value, value, (size_t)nbytes);
    store_release(&eventual->is_ready, 1); /* pairs with wait_until and ABT_eventual_test */
    abt_unlock_and_wake_all(&eventual->lock, &eventual->list);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_eventual_reset(ABT_eventual handle) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_EVENTUAL);
    struct eventual *eventual = eventual_of(handle);
    abt_lock(&eventual->lock);
    store_relaxed(&eventual->is_ready, 0);
    abt_unlock(&eventual->lock);
    return ABT_SUCCESS;
}

/* --- futures ------------------------------------------------------------------------------------------- */

struct future {
    struct abt_spin lock;
    uint32_t is_ready;        /* changed under lock; the store of 1 pairs with the loads */
    uint32_t count, set;      /* compartments; under lock */
    struct abt_waitlist list; /* under lock */
    void (*callback)(void **);
    void *values[]; /* in the order in which they were set */
};

static struct future *future_of(ABT_future handle) {
    return (struct future *)(void *)handle;
}

ABT_EXPORT int ABT_future_create(uint32_t num_compartments, void (*cb_func)(void **arg),
                                 ABT_future *newfuture) {
    struct future *future = calloc(1, sizeof *future + num_compartments * sizeof(void *));
    *newfuture = ABT_FUTURE_NULL;
    ABT_CHECK(future != NULL, ABT_ERR_MEM);
    future->count = num_compartments;
    future->is_ready = num_compartments == 0;
    future->callback = cb_func;
    *newfuture = (ABT_future)(void *)future;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_future_free(ABT_future *handle) {
    ABT_CHECK_HANDLE(*handle, ABT_ERR_INV_FUTURE);
    object_drain(&future_of(*handle)->lock);
    free(*handle);
    *handle = ABT_FUTURE_NULL;
    return ABT_SUCCESS;
}

static ARCH_CALLED_BY_NAME uint64_t future_wait(ABT_future handle, void *unused, const void *place) {
    (void)unused;
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_FUTURE);
    NO_TASKLET(ABT_ERR_FUTURE);
    struct future *future = future_of(handle);
    bool jumps = false;
    if (!load_acquire(&future->is_ready)) {
        abt_lock(&future->lock);
        if (future->is_ready)
            abt_unlock(&future->lock);
        else
            jumps = !abt_wait_in_from(&future->list, &future->lock, place);
    }
    return arch_return(ABT_SUCCESS, jumps);
}
ARCH_RETURN_BY_PLACE(ABT_EXPORT int, ABT_future_wait, (ABT_future future), future_wait, future, NULL)

ABT_EXPORT int ABT_future_test(ABT_future handle, ABT_bool *is_ready) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_FUTURE);
    *is_ready = load_acquire(&future_of(handle)->is_ready) != 0;
    return ABT_SUCCESS;
}

/* The setter of the last one calls the function, before it is ready. */
ABT_EXPORT int ABT_future_set(ABT_future handle, void *value) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_FUTURE);
    struct future *future = future_of(handle);
    abt_lock(&future->lock);
    if (future->set == future->count) {
        abt_unlock(&future->lock);
        return ABT_ERR_FUTURE;
    }
    future->values[future->set++] = value;
    bool is_last = future->set == future->count;
    abt_unlock(&future->lock);
    if (!is_last)
        return ABT_SUCCESS;
    if (future->callback != NULL)
        future->callback(future->values);
    abt_lock(&future->lock);
    store_release(&future->is_ready, 1);
    abt_unlock_and_wake_all(&future->lock, &future->list);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_future_reset(ABT_future handle) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_FUTURE);
    struct future *future = future_of(handle);
    abt_lock(&future->lock);
    future->set = 0;
    store_relaxed(&future->is_ready, future->count == 0);
    abt_unlock(&future->lock);
    return ABT_SUCCESS;
}
