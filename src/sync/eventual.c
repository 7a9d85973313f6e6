// SPDX-License-Identifier: Apache-2.0
/* The eventual: an event with a value, which the one successful setter writes before it sets the event. */
#include <errno.h>

#include "sync/event.h"

struct eventual {
    struct event event; /* first: thrum_wait_any */
    void *value;        /* r/o once the event is set */
    uint32_t taken;     /* a thread sets it, or has */
};

_Static_assert(sizeof(struct eventual) <= sizeof(thrum_eventual_t), "thrum/sync.h leaves room for it");

static struct eventual *eventual_of(thrum_eventual_t *eventual) {
    return (struct eventual *)(void *)eventual;
}

static int give(const struct eventual *eventual, int error, void **value) {
    if (error == 0 && value != NULL)
        *value = eventual->value;
    return error;
}

void thrum_eventual_init(thrum_eventual_t *eventual) {
    if (is_null(eventual))
        misuse_null(__func__);
    *eventual_of(eventual) = (struct eventual){.value = NULL};
}

int thrum_eventual_set(thrum_eventual_t *object, void *value) {
    if (is_null(object))
        return EINVAL;
    struct eventual *eventual = eventual_of(object);
    uint32_t free = 0;
    if (!cas_relaxed(&eventual->taken, &free, 1))
        return EBUSY;
    eventual->value = value;
    event_set(&eventual->event);
    return 0;
}

int thrum_eventual_try_get(thrum_eventual_t *object, void **value) {
    if (is_null(object))
        return EINVAL;
    struct eventual *eventual = eventual_of(object);
    return give(eventual, event_is_set(&eventual->event) ? 0 : EBUSY, value);
}

void *thrum_eventual_get(thrum_eventual_t *object) {
    if (is_null(object))
        misuse_null(__func__);
    struct eventual *eventual = eventual_of(object);
    event_wait(&eventual->event, AWAITS_EVENTUAL, TIMER_NEVER);
    return eventual->value;
}

int thrum_eventual_get_until(thrum_eventual_t *object, void **value, uint64_t deadline) {
    if (is_null(object))
        return EINVAL;
    struct eventual *eventual = eventual_of(object);
    return give(eventual, event_wait(&eventual->event, AWAITS_EVENTUAL, deadline), value);
}

int thrum_eventual_reset(thrum_eventual_t *eventual) {
    int error = thrum_eventual_destroy(eventual);
    if (error == 0)
        thrum_eventual_init(eventual);
    return error;
}

int thrum_eventual_destroy(thrum_eventual_t *eventual) {
    if (is_null(eventual))
        return EINVAL;
    if (event_has_waiters(&eventual_of(eventual)->event))
        return misuse(EBUSY, "thrum_eventual_destroy: a thread still waits for this eventual");
    return 0;
}
