// SPDX-License-Identifier: Apache-2.0
/* The latch: an event that is set when a count has come down to zero. Only the thread that brings it there touches
 * the object after its own count, and does so in event_set. */
#include <errno.h>

#include "sync/event.h"

struct latch {
    struct event event; /* first: thrum_wait_any */
    uint32_t count;
};

_Static_assert(sizeof(struct latch) <= sizeof(thrum_latch_t), "thrum/sync.h leaves room for it");
_Static_assert(offsetof(struct latch, count) == 4 * sizeof(uint64_t), "THRUM_LATCH_INITIALIZER");

static struct latch *latch_of(thrum_latch_t *latch) {
    return (struct latch *)(void *)latch;
}

void thrum_latch_init(thrum_latch_t *latch, unsigned count) {
    if (is_null(latch))
        misuse_null(__func__);
    *latch_of(latch) = (struct latch){.event.queue.word = count == 0 ? EVENT_SET : 0, .count = count};
}

int thrum_latch_count_down(thrum_latch_t *object, unsigned by) {
    if (is_null(object))
        return EINVAL;
    struct latch *latch = latch_of(object);
    uint32_t count = load_relaxed(&latch->count);
    annotate_happens_before(&latch->count);
    do
        if (by > count)
            return EINVAL;
    while (!cas_acq_rel(&latch->count, &count,
                        count - by)); /* pairs with those of the others: what they did before is passed on */
    if (count == by && by != 0) {
        annotate_happens_after(&latch->count);
        event_set(&latch->event);
    }
    return 0;
}

int thrum_latch_try_wait(thrum_latch_t *latch) {
    if (is_null(latch))
        return EINVAL;
    return event_is_set(&latch_of(latch)->event) ? 0 : EBUSY;
}

void thrum_latch_wait(thrum_latch_t *latch) {
    if (is_null(latch))
        misuse_null(__func__);
    event_wait(&latch_of(latch)->event, AWAITS_LATCH, TIMER_NEVER);
}

int thrum_latch_wait_until(thrum_latch_t *latch, uint64_t deadline) {
    if (is_null(latch))
        return EINVAL;
    return event_wait(&latch_of(latch)->event, AWAITS_LATCH, deadline);
}

int thrum_latch_destroy(thrum_latch_t *latch) {
    if (is_null(latch))
        return EINVAL;
    if (event_has_waiters(&latch_of(latch)->event))
        return misuse(EBUSY, "thrum_latch_destroy: a thread still waits for this latch");
    return 0;
}
