// SPDX-License-Identifier: Apache-2.0
/* Schedulers whose function a thread runs, in the place of a worker's loop (thrum_sched_spawn).
 *
 * Such a scheduler that finds nothing waits like a thread, in a list, and its worker runs others. If it parked, it
 * would block the units of its worker's own scheduler, or of the one below. A push to one of its pools wakes it if no
 * worker is parked that would look there; the thread is then enqueued like any other.
 *
 * No wake-up is lost. Pusher: (1) pushes, (2) reads `count`, through scheduler_wake_stacked, which is set
 * before the first is counted. Waiter: (3) counts itself, in the list, (4) looks at its
 * pools once more. Both sides have a fence in between, so either (2) sees (3) or (4) sees (1); likewise with
 * `stopping` in the place of the push. The thread that claims the wait (sched/wait.h), under `lock`, takes it off the
 * list, and wakes the waiter after it has released `lock`: that is itself a push, to the pool that the waiter is in.
 * A waiter whose deadline has come, that has seen (1), or that is cancelled takes itself off. A push wakes all that
 * look there: unlike a parked worker a woken thread may have to wait behind one that computes, while another thread's
 * worker is free.
 *
 * Modelled in tests/model/stacked.pml. */
#ifndef THRUM_SCHED_POOL_STACKED_H
#define THRUM_SCHED_POOL_STACKED_H

#include "base/inside.h"
#include "sched/pool/scheduler.h"
#include "sched/worker.h"

static inline bool is_stacked(const struct worker *worker) {
    return worker->current != &worker->base;
}

/* The function of this scheduler, which a thread runs, has found nothing: waits until there is something, it must
 * stop, or one of its pools must be looked at again; others run once in any case. */
LEAVES void stacked_wait(struct worker *worker, struct thrum_sched *sched);

/* The scheduler whose function that thread runs; NULL: none. */
const struct thrum_sched *stacked_of(const struct thrum_unit *unit);

/* The scheduler whose function the present loop of the worker runs; NULL: none. */
const struct thrum_sched *stacked_or_own(const struct worker *worker);

/* There are no threads any more that could wait. */
void stacked_forget(void);
void stacked_fork_child(void);

#endif
