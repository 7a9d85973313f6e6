// SPDX-License-Identifier: Apache-2.0
/* Waiting in a list, until a waker claims the waiter or something else ends the wait (timed_wait.h). */
#ifndef THRUM_SCHED_WAIT_H
#define THRUM_SCHED_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/inside.h"

struct thrum_unit;
struct worker;

enum wait_state { WAIT_WAITING, WAIT_WOKEN, WAIT_TIMED_OUT };

/* A waiter, on its own stack; wakers find it in a list. The thread that changes `claim` from WAIT_WAITING wakes the
 * unit; until it has, the waiter stays where it is. A thread that fails to change it must not touch this any more,
 * unless something else keeps it there: a list's lock, under which wakers claim and a timed-out waiter takes itself
 * off. */
struct wait {
    struct thrum_unit *unit; /* r/o */
    uint32_t claim;          /* enum wait_state */
};

/* By a waker. True: it must now unit_wake(worker, wait->unit). False: the waiter has timed out. */
static inline bool wait_claim(struct wait *wait) {
    uint32_t waiting = WAIT_WAITING;
    /* Pairs with give_up's cas (wait.c): one of the two ends the wait. */
    return cas_acq_rel(&wait->claim, &waiting, WAIT_WOKEN);
}

/* Blocks the caller's unit, wait->unit, which has announced itself, until a thread has claimed it and calls
 * unit_wake, or until the deadline (TIMER_NEVER: none). False: the deadline came first; no waker has claimed it or
 * will. On a worker, inside, and inside again, perhaps on another one, when it returns; or external (`worker` NULL). */
INSIDE bool unit_block_until(struct worker *worker, struct wait *wait, uint64_t deadline);

#endif
