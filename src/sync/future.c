// SPDX-License-Identifier: Apache-2.0
/* The future: an event that is set when all of n values are there. A setter takes a place, writes its value, and
 * counts it as written; the setter that counts the last one sets the event. */
#include <errno.h>

#include "sync/event.h"

struct future {
    struct event event; /* first: thrum_wait_any */
    void **values;      /* r/o, as count; each place is its taker's, and r/o once the event is set */
    uint32_t count;
    uint32_t taken, written;
};

_Static_assert(sizeof(struct future) <= sizeof(thrum_future_t), "thrum/sync.h leaves room for it");

static struct future *future_of(thrum_future_t *future) {
    return (struct future *)(void *)future;
}

void thrum_future_init(thrum_future_t *future, void **values, unsigned count) {
    if (is_null(future) || (is_null(values) && count != 0))
        misuse_null(__func__);
    *future_of(future) =
        (struct future){.event.queue.word = count == 0 ? EVENT_SET : 0, .values = values, .count = count};
}

int thrum_future_set(thrum_future_t *object, void *value) {
    if (is_null(object))
        return EINVAL;
    struct future *future = future_of(object);
    uint32_t place = load_relaxed(&future->taken);
    do
        if (place == future->count)
            return EBUSY;
    while (!cas_relaxed(&future->taken, &place, place + 1));
    future->values[place] = value;
    annotate_happens_before(&future->written);
    /* Pairs with those of the other setters: the last one has all values. */
    if (fetch_add_seq_cst(&future->written, 1) + 1 == future->count) {
        annotate_happens_after(&future->written);
        event_set(&future->event);
    }
    return 0;
}

int thrum_future_try_wait(thrum_future_t *future) {
    if (is_null(future))
        return EINVAL;
    return event_is_set(&future_of(future)->event) ? 0 : EBUSY;
}

void thrum_future_wait(thrum_future_t *future) {
    if (is_null(future))
        misuse_null(__func__);
    event_wait(&future_of(future)->event, AWAITS_FUTURE, TIMER_NEVER);
}

int thrum_future_wait_until(thrum_future_t *future, uint64_t deadline) {
    if (is_null(future))
        return EINVAL;
    return event_wait(&future_of(future)->event, AWAITS_FUTURE, deadline);
}

int thrum_future_reset(thrum_future_t *object) {
    if (is_null(object))
        return EINVAL;
    struct future *future = future_of(object);
    int error = thrum_future_destroy(object);
    if (error == 0)
        thrum_future_init(object, future->values, future->count);
    return error;
}

int thrum_future_destroy(thrum_future_t *future) {
    if (is_null(future))
        return EINVAL;
    if (event_has_waiters(&future_of(future)->event))
        return misuse(EBUSY, "thrum_future_destroy: a thread still waits for this future");
    return 0;
}
