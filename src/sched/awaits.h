// SPDX-License-Identifier: Apache-2.0
/* What a unit waits for, recorded for inspection from outside (src/inspect); nothing here decides by it.
 *
 * `awaits` of a unit: one of these in the topmost byte, with AWAITS_TIMED if the wait has a deadline, and below it
 * the address of the object. The unit writes it before it announces itself. The waker clears it (unit_wake,
 * thrum_switch_to); the unit itself does if it does not wait after all, or if an ending unit switched to it directly
 * (join.c). So it is set while the unit waits, and briefly before.
 *
 * When a unit is moved from one object to another (sync/mutex.h), the thread that claimed it changes the word; the
 * deadline does not apply to the second wait. */
#ifndef THRUM_SCHED_AWAITS_H
#define THRUM_SCHED_AWAITS_H

#include <stdint.h>

enum awaits {
    AWAITS_NOTHING,
    AWAITS_TIME,   /* thrum_sleep */
    AWAITS_RESUME, /* thrum_suspend */
    AWAITS_END,    /* of a unit */
    AWAITS_CALL,   /* thrum_blocking */
    AWAITS_WORKER, /* thrum_worker_stop: that one's end */
    AWAITS_WORK,   /* thrum_sched_idle of a scheduler that is stacked */
    AWAITS_ANY,    /* thrum_wait_any: nothing alone */
    AWAITS_MUTEX,
    AWAITS_COND,
    AWAITS_READ, /* of a readers-writer lock */
    AWAITS_WRITE,
    AWAITS_SEM,
    AWAITS_BARRIER,
    AWAITS_EVENT,
    AWAITS_LATCH,
    AWAITS_EVENTUAL,
    AWAITS_FUTURE,
    AWAITS_ONCE,
    AWAITS_SEND, /* to a channel */
    AWAITS_RECEIVE,
    AWAITS_KINDS
};

enum { AWAITS_SHIFT = 56 };
#define AWAITS_TIMED (UINT64_C(1) << 63)

static inline uint64_t awaits_make(enum awaits kind, const void *object) {
    return (uint64_t)kind << AWAITS_SHIFT | (uintptr_t)object;
}

static inline enum awaits awaits_kind(uint64_t awaits) {
    return (enum awaits)((awaits & ~AWAITS_TIMED) >> AWAITS_SHIFT);
}

static inline uint64_t awaits_object(uint64_t awaits) {
    return awaits & ((UINT64_C(1) << AWAITS_SHIFT) - 1);
}

#endif
