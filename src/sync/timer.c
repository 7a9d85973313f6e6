// SPDX-License-Identifier: Apache-2.0
/* Timers of the program's: a thread that waits until the expiry, or to be told to stop. (Threads' deadlines use
 * sched/time/timer.h.) No other thread could call the program's function: it may wait. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/atomic.h"
#include "base/misuse.h"
#include "sched/worker.h"
#include "thrum/sync.h"
#include "thrum/time.h"

struct program_timer {
    thrum_event_t stop;
    thrum_t thread;  /* NULL: it is not started; the starter's and the stopper's */
    uint64_t next;   /* the thread's, as the next three */
    uint64_t period; /* 0: once */
    void (*fn)(void *);
    void *arg;
    thrum_t caller; /* in `fn` now: by the thread itself, read by the thread that stops it */
};

_Static_assert(sizeof(struct program_timer) <= sizeof(thrum_timer_t), "thrum/time.h leaves room for it");

static struct program_timer *timer_of(thrum_timer_t *timer) {
    return (struct program_timer *)(void *)timer;
}

/* The first moment of the period that has not passed. */
static uint64_t deadline_after(uint64_t last, uint64_t period) {
    uint64_t now = thrum_now(), over = now > last ? (now - last) / period : 0, next;
    bool is_far =
        __builtin_mul_overflow(over + 1, period, &next) || __builtin_add_overflow(last, next, &next);
    return is_far ? UINT64_MAX : next;
}

static void *run(void *arg) {
    struct program_timer *timer = arg;
    while (thrum_event_wait_until(&timer->stop, timer->next) == ETIMEDOUT) {
        store_relaxed(&timer->caller, thrum_self());
        timer->fn(timer->arg);
        store_relaxed(&timer->caller, NULL);
        if (timer->period == 0)
            break;
        timer->next = deadline_after(timer->next, timer->period);
    }
    return NULL;
}

void thrum_timer_init(thrum_timer_t *timer) {
    if (is_null(timer))
        misuse_null(__func__);
    *timer_of(timer) = (struct program_timer){.stop = THRUM_EVENT_INITIALIZER};
}

int thrum_timer_start(thrum_timer_t *object, uint64_t expiry, uint64_t period, void (*fn)(void *),
                      void *arg) {
    struct program_timer *timer = timer_of(object);
    if (is_null(object) || fn == NULL)
        return EINVAL;
    if (timer->thread != NULL)
        return EBUSY;
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    thrum_attr_set_flags(&attr, THRUM_SPAWN_QUEUED);
    thrum_event_reset(&timer->stop);
    timer->next = expiry;
    timer->period = period;
    timer->fn = fn;
    timer->arg = arg;
    return thrum_spawn(&timer->thread, &attr, run, timer);
}

int thrum_timer_stop_until(thrum_timer_t *object, uint64_t deadline) {
    if (is_null(object))
        return EINVAL;
    struct program_timer *timer = timer_of(object);
    thrum_t self = thrum_self();
    bool is_within = self != NULL && self == load_relaxed(&timer->caller);
    if (!is_within && timer->thread == NULL)
        return EINVAL;
    if (!is_within &&
        handle_check(timer->thread) != 0) { /* what waits in `stop` went with the runtime, too */
        thrum_timer_init(object);
        return ESRCH;
    }
    thrum_event_set(&timer->stop);
    int error = is_within ? EDEADLK : thrum_join_until(timer->thread, NULL, deadline);
    if (error == 0)
        timer->thread = NULL;
    return error;
}

int thrum_timer_stop(thrum_timer_t *timer) {
    return thrum_timer_stop_until(timer, UINT64_MAX);
}
