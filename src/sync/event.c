// SPDX-License-Identifier: Apache-2.0
/* See event.h. */
#include "sync/event.h"

#include <errno.h>

#include "arch_return.h"
#include "sched/cancel.h"

static __attribute__((noinline)) void set_slow(struct event *event) {
    enter();
    struct waiters taken = {.first = NULL};
    waiters_take_all(&event->queue.waiters, &event->queue.word, word_lock(&event->queue.word), 0, &taken);
    word_unlock(&event->queue.word, EVENT_SET);
    waiters_wake(&taken, 0);
    leave();
}

void event_set(struct event *event) {
    uint32_t word = 0;
    annotate_happens_before(&event->queue.word);
    /* This and the next pair with event_is_set, event_wait's word_lock and the cas of a reset. */
    if (cas_acq_rel(&event->queue.word, &word, EVENT_SET))
        return;
    /* A cas that fails releases nothing. Not where SPIN is held: its holder would write over this. */
    if (word != EVENT_SET || !cas_acq_rel(&event->queue.word, &word, EVENT_SET))
        set_slow(event);
}

int event_wait(struct event *event, enum awaits kind, uint64_t deadline) {
    if (event_is_set(event))
        return 0;
    struct worker *worker = enter();
    uint32_t word = word_lock(&event->queue.word);
    int error = 0;
    if (word & EVENT_SET)
        word_unlock(&event->queue.word, word);
    else if (!queue_wait(worker, &event->queue, kind, word, cancel_point(worker, deadline)))
        error = ETIMEDOUT;
    leave();
    return cancel_act(error);
}

/* --- thrum_event_t ------------------------------------------------------------------------------------ */

void thrum_event_init(thrum_event_t *event) {
    if (is_null(event))
        misuse_null(__func__);
    *event_of(event) = (struct event){.queue.word = 0};
}

void thrum_event_set(thrum_event_t *event) {
    if (is_null(event))
        misuse_null(__func__);
    event_set(event_of(event));
}

/* While it is set no thread waits, and SPIN is only held by a thread that finds out that it is set. */
void thrum_event_reset(thrum_event_t *object) {
    if (is_null(object))
        misuse_null(__func__);
    struct event *event = event_of(object);
    for (unsigned tries = 0; event_is_set(event); backoff(tries++)) {
        uint32_t word = EVENT_SET;
        if (cas_acq_rel(&event->queue.word, &word, 0)) /* pairs with event_set, before it and after it */
            return;
    }
}

int thrum_event_try_wait(thrum_event_t *event) {
    if (is_null(event))
        return EINVAL;
    return event_is_set(event_of(event)) ? 0 : EBUSY;
}

static ARCH_CALLED_BY_NAME uint64_t event_wait_from(thrum_event_t *event, const void *unused,
                                                    const void *place) {
    (void)unused;
    if (is_null(event))
        misuse_null("thrum_event_wait");
    unit_leaves_from(place);
    event_wait(event_of(event), AWAITS_EVENT, TIMER_NEVER);
    return arch_return(0, !unit_was_left_from(place));
}
ARCH_RETURN_VOID_BY_PLACE(thrum_event_wait, (thrum_event_t * event), event_wait_from, event, NULL)

int thrum_event_wait_until(thrum_event_t *event, uint64_t deadline) {
    if (is_null(event))
        return EINVAL;
    return event_wait(event_of(event), AWAITS_EVENT, deadline);
}

int thrum_event_destroy(thrum_event_t *event) {
    if (is_null(event))
        return EINVAL;
    if (event_has_waiters(event_of(event)))
        return misuse(EBUSY, "thrum_event_destroy: a thread still waits for this event");
    return 0;
}
