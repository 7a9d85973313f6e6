// SPDX-License-Identifier: Apache-2.0
/* Deferred cancellation: a thread that is asked to end does so where it waits, or at thrum_testcancel.
 *
 * Representation. `cancel` of a unit: flags, and while it waits at a cancellation point the address of its
 *   cancel_watch.
 *   CANCEL_REQUESTED  set once, by the first canceller
 *   CANCEL_DISABLED   by the unit itself; then it leaves no watch
 *   CANCEL_HELD       the canceller uses the watch, which stays where it is meanwhile
 *   Only a unit that was created cancellable has a watch, or reads this word at all: the others pay nothing.
 * Linearization. A request: the cas that sets CANCEL_REQUESTED. A wait that can be ended: the cas that puts the watch
 *   there, which fails when there is a request. So either sees the other.
 * Reclamation. A watch lies on the waiter's stack. The waiter removes it before it continues (cancel_unwatch), and
 *   waits until CANCEL_HELD is clear first. Either the object's waker or the canceller ends the wait: give_up
 *   decides, by the wait's own claim; the winner wakes the unit.
 *
 * Modelled in tests/model/cancel.pml. */
#ifndef THRUM_SCHED_CANCEL_H
#define THRUM_SCHED_CANCEL_H

#include <errno.h>

#include "base/inside.h"
#include "sched/time/timer.h"
#include "sched/worker.h"

enum { CANCEL_REQUESTED = 1, CANCEL_DISABLED = 2, CANCEL_HELD = 4, CANCEL_FLAGS = 7 };

struct cancel_watch {
    /* Ends the wait and wakes the unit, unless another thread already does. `worker` is the caller's, or NULL. */
    void (*give_up)(struct worker *worker, struct cancel_watch *watch);
} __attribute__((aligned(8)));

/* The deadline of a wait that has none but may be cancelled: the wait is contested, and has no timer. */
#define CANCEL_FAR (TIMER_NEVER - 1)

/* Right before a wait that may be cancelled: returns the deadline to wait with. */
static inline uint64_t cancel_point(const struct worker *worker, uint64_t deadline) {
    if (__builtin_expect(worker == NULL || !worker->current->cancellable, 1) ||
        load_relaxed(&worker->current->cancel) & CANCEL_DISABLED)
        return deadline;
    worker->current->at_cancel_point = true;
    return deadline < CANCEL_FAR ? deadline : CANCEL_FAR;
}

/* Likewise right before a wait for a lock, which is a cancellation point of those threads alone that asked for that. */
static inline uint64_t cancel_point_of_lock(const struct worker *worker, uint64_t deadline) {
    return worker != NULL && worker->current->cancels_locks ? cancel_point(worker, deadline) : deadline;
}

/* Does the wait that now begins belong to a cancellation point? By the unit itself, once. */
static inline bool cancel_is_point(struct thrum_unit *self) {
    bool is_point = self->at_cancel_point;
    if (__builtin_expect(is_point, 0))
        self->at_cancel_point = false;
    return is_point;
}

/* False: there is a request already; there is no watch then. */
bool cancel_watch(struct thrum_unit *self, struct cancel_watch *watch);
void cancel_unwatch(struct thrum_unit *self);

void cancel_disable(struct thrum_unit *self);

void cancel_act_slow(void);

/* At the end of a cancellation point, outside, when nothing of it is left: ends the thread if that is what ended the
 * wait. Returns `error`. */
NOT_INSIDE static inline int cancel_act(int error) {
    if (__builtin_expect(error == ETIMEDOUT, 0))
        cancel_act_slow();
    return error;
}

void cancel_act_of_lock_slow(void);

NOT_INSIDE static inline int cancel_act_of_lock(int error) {
    if (__builtin_expect(error == ETIMEDOUT, 0))
        cancel_act_of_lock_slow();
    return error;
}

#endif
