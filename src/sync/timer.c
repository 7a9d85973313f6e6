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
    /* The thread while it is in `fn`, else 0; with STOPPED, which the stopper adds, it does not enter `fn` again. */
    uintptr_t call;
};

enum { STOPPED = 1 };

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

/* False: it is stopped. The wait alone does not tell: it may have expired before the stopper set the event. */
static bool begin_call(struct program_timer *timer) {
    uintptr_t none = 0;
    return cas_acq_rel(&timer->call, &none, (uintptr_t)thrum_self()); /* pairs with the stopper's fetch_or */
}

static void end_call(struct program_timer *timer) {
    fetch_and_acq_rel(&timer->call, (uintptr_t)STOPPED); /* pairs with the stopper's fetch_or */
}

static void *run(void *arg) {
    struct program_timer *timer = arg;
    while (thrum_event_wait_until(&timer->stop, timer->next) == ETIMEDOUT && begin_call(timer)) {
        timer->fn(timer->arg);
        end_call(timer);
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
    timer->call = 0;
    return thrum_spawn(&timer->thread, &attr, run, timer);
}

/* No cancellation point: the caller's frames may hold the timer, which must not outlive them. */
static int wait_for_end(thrum_t thread, uint64_t deadline) {
    int enabled = thrum_set_cancel(0);
    int error = thrum_join_until(thread, NULL, deadline);
    thrum_set_cancel(enabled);
    return error;
}

int thrum_timer_stop_until(thrum_timer_t *object, uint64_t deadline) {
    if (is_null(object))
        return EINVAL;
    struct program_timer *timer = timer_of(object);
    thrum_t self = thrum_self();
    bool is_within = self != NULL && (uintptr_t)self == (load_relaxed(&timer->call) & ~(uintptr_t)STOPPED);
    if (!is_within && timer->thread == NULL)
        return EINVAL;
    if (!is_within &&
        handle_check(timer->thread) != 0) { /* what waits in `stop` went with the runtime, too */
        thrum_timer_init(object);
        return ESRCH;
    }
    fetch_or_acq_rel(&timer->call, (uintptr_t)STOPPED); /* pairs with begin_call and end_call */
    thrum_event_set(&timer->stop);
    int error = is_within ? EDEADLK : wait_for_end(timer->thread, deadline);
    if (error == 0)
        timer->thread = NULL;
    return error;
}

int thrum_timer_stop(thrum_timer_t *timer) {
    return thrum_timer_stop_until(timer, UINT64_MAX);
}
