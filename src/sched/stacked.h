// SPDX-License-Identifier: Apache-2.0
/* Schedulers whose function a thread runs, in the place of a worker's loop (thrum_sched_spawn).
 *
 * Such a one that finds nothing waits as threads do, in a list, and its worker goes on with others: were it to park, it would
 * keep those away that its worker's own scheduler, or the one below, has. A push to one of its pools wakes it where no worker
 * is parked that would look there; the thread then has its turn as others have.
 *
 * No wake-up is lost. Pusher: (1) pushes, (2) reads `count`. Waiter: (3) counts itself, in the list, (4) looks at its pools once
 * more. There is a fence in between on both sides, so either (2) sees (3) or (4) sees (1); likewise with `stopping` in the place of
 * the push. Who claims the wait (sched/wait.h), under `lock`, takes it off the list, and wakes the thread when it has let go of
 * `lock`: that is itself a push, to the pool which the thread is in. A waiter whose moment has come, who has seen (1), or who is
 * cancelled takes itself off. A push wakes all that look there: unlike a parked worker a thread that was woken may have to wait for
 * its turn, behind one that computes, while another's worker is free.
 *
 * Modelled in tests/model/stacked.pml. */
#ifndef THRUM_SCHED_STACKED_H
#define THRUM_SCHED_STACKED_H

#include "sched/scheduler.h"
#include "sched/worker.h"

static inline bool is_stacked(const struct worker *worker) {
    return worker->current != &worker->base;
}

/* The function of this one, which the worker's thread runs, has found nothing: until there is something, it is to stop, or
 * one of its pools is to be looked at again; others have a turn in any case. Inside; outside when it returns. */
void stacked_wait(struct worker *worker, struct thrum_sched *sched);

/* After a push, and a fence: wakes those that wait and would look there. Inside. */
void stacked_wake_for(const struct thrum_pool *pool);

/* Whose function that thread runs; NULL: nobody's. */
const struct thrum_sched *stacked_of(const struct thrum_unit *unit);

/* There are no threads any more that could wait. */
void stacked_forget(void);
void stacked_fork_child(void);

#endif
