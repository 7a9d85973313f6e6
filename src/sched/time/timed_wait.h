// SPDX-License-Identifier: Apache-2.0
/* What may end a wait besides a wake-up: a deadline, or a request to cancel.
 *
 * The thread that ends a wait, a waker, the timer or the canceller, first takes the waiter from where it stands, by
 * one atomic step that only one of them can make; that one wakes it. What the step is depends on where the waiter
 * stands: `claim` for waiters in a list (wait.h), the `join` word of the thread for joiners (unit.h). */
#ifndef THRUM_SCHED_TIME_TIMED_WAIT_H
#define THRUM_SCHED_TIME_TIMED_WAIT_H

#include <stdbool.h>

#include "base/inside.h"
#include "sched/cancel.h"
#include "sched/time/timer.h"

/* On the waiter's own stack. */
struct timed_wait {
    struct timer timer; /* its deadline: the caller's to set; the rest is timed_wait.c's */
    struct cancel_watch watch;
    struct thrum_unit *unit;
    /* Takes the waiter from where it stands. False: another thread has, and wakes it. By the timer, under its lock;
     * by the canceller; by the waiter itself. */
    bool (*give_up)(struct timed_wait *timed_wait);
};

/* Blocks timed_wait->unit, which has announced itself and stands where a waker finds it, until it is woken or has been
 * given up, at once if its deadline is over, and not at all if that is TIMER_NEVER; which of the two is for the caller to
 * find out. On a worker, inside, and inside again, perhaps on another
 * one, when it returns; or external (`worker` NULL). */
INSIDE void unit_block_timed(struct worker *worker, struct timed_wait *timed_wait);

#endif
