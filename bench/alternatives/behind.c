// SPDX-License-Identifier: Apache-2.0
/* See behind.h. */
#include "behind.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "base/atomic.h"
#include "stack_cache.h"

/* libc's, or the next library's. The front end looks them up before it calls any. */
static struct {
    __typeof__(&pthread_join) join;
    __typeof__(&pthread_tryjoin_np) tryjoin;
    __typeof__(&pthread_timedjoin_np) timedjoin;
    __typeof__(&pthread_clockjoin_np) clockjoin;
    __typeof__(&pthread_detach) detach;
    __typeof__(&pthread_getattr_np) getattr;
} real;

static int joined(struct stack_held held, int error) {
    if (error == 0)
        stack_cache_joined(held);
    return error;
}

static int join(pthread_t handle, void **result) {
    struct stack_held held = stack_cache_hold(handle);
    return joined(held, load_relaxed(&real.join)(handle, result));
}

static int tryjoin(pthread_t handle, void **result) {
    struct stack_held held = stack_cache_hold(handle);
    return joined(held, load_relaxed(&real.tryjoin)(handle, result));
}

static int timedjoin(pthread_t handle, void **result, const struct timespec *deadline) {
    struct stack_held held = stack_cache_hold(handle);
    return joined(held, load_relaxed(&real.timedjoin)(handle, result, deadline));
}

static int clockjoin(pthread_t handle, void **result, clockid_t clock, const struct timespec *deadline) {
    struct stack_held held = stack_cache_hold(handle);
    return joined(held, load_relaxed(&real.clockjoin)(handle, result, clock, deadline));
}

static int detach(pthread_t handle) {
    struct stack_held held = stack_cache_hold(handle);
    int error = load_relaxed(&real.detach)(handle);
    if (error == 0)
        stack_cache_detached(held);
    return error;
}

static int getattr(pthread_t handle, pthread_attr_t *attributes) {
    int error = load_relaxed(&real.getattr)(handle, attributes);
    if (error == 0)
        stack_cache_attributes(handle, attributes);
    return error;
}

#define BEHIND(function, own, slot)                                                                          \
    if (strcmp(name, #function) == 0) {                                                                      \
        store_relaxed(&real.slot, (__typeof__(real.slot))found);                                             \
        __typeof__(real.slot) ours = own;                                                                    \
        return (void *)ours;                                                                                 \
    }

void *behind(const char *name, void *found) {
    if (found == NULL)
        return NULL;
    BEHIND(pthread_join, join, join)
    BEHIND(pthread_tryjoin_np, tryjoin, tryjoin)
    BEHIND(pthread_timedjoin_np, timedjoin, timedjoin)
    BEHIND(pthread_clockjoin_np, clockjoin, clockjoin)
    BEHIND(pthread_detach, detach, detach)
    BEHIND(pthread_getattr_np, getattr, getattr)
    return found;
}
