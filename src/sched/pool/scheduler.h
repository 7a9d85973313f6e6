// SPDX-License-Identifier: Apache-2.0
/* Schedulers, from inside; the public side is <thrum/pool.h>.
 *
 * A worker with a scheduler runs its function instead of the default loop's choosing. The function is called on the
 * worker's loop, pops units and runs each with thrum_run; a unit that waits returns there, since pick() gives nothing
 * on such a worker. When the function finds nothing it calls thrum_sched_idle. That helps with units that are in no
 * pool (run queues of others, external pushes), so that no unit is stuck because all workers have schedulers; and it
 * parks where a push to one of the scheduler's pools wakes it.
 *
 * A push wakes one worker, which may have found something else meanwhile: another scheduler, an order to stop, or a
 * unit on its way. So that the push is not lost, a worker that leaves the search without running what it was woken
 * for wakes another one for each of its pools that is not empty. A worker that has run a unit of them does so too,
 * since it may have been another unit. */
#ifndef THRUM_SCHED_POOL_SCHEDULER_H
#define THRUM_SCHED_POOL_SCHEDULER_H

#include "base/inside.h"
#include "sched/unit.h"
#include "thrum/pool.h"

enum { SCHED_POOLS = THRUM_SCHED_POOLS_MAX };

struct thrum_sched {
    void (*run)(struct thrum_sched *sched, void *data); /* r/o, as all up to `levels` */
    void *data;
    unsigned count;
    bool by_order; /* it takes from the first of them that has something */
    bool may_hold; /* its function is the program's, and may have units that it has not run yet */
    unsigned
        levels; /* that it steals by: the first pools are its own, then come the others' of each level; 0: it does not */
    uint32_t slice;    /* us, of what it runs; 0: the runtime's */
    uint32_t used;     /* the number of the runtime in which a worker or a thread has it; by cas */
    uint32_t stopping; /* its function must return; 0 again when another worker or thread gets it;
                        * thrum_sched_stop's store pairs with the loads */
    uint64_t random;
    struct thrum_pool *pools[]; /* r/o; so many as its slab has room for (scheduler.c) */
};

/* A unit was pushed there: wakes a parked worker that would look, or else the threads that do so (stacked.h). False:
 * there is no such worker, nor one that looks by itself: a thread may have to wait for its turn. */
INSIDE bool scheduler_wake_for(const struct thrum_pool *pool);
/* ... wakes the stacked ones that wait and would look there (stacked.h); NULL: none has ever waited. After a push, and a fence.
 * Inside. */
extern void (*scheduler_wake_stacked)(const struct thrum_pool *pool);

/* The worker, if any, that is parked in this one's function. */
INSIDE void scheduler_wake(const struct thrum_sched *sched);

/* To be run by one worker or one thread. False: another has it. */
bool scheduler_claim(struct thrum_sched *sched);
void scheduler_release(struct thrum_sched *sched);

/* Is this one of its pools? NULL has none. */
SIGSAFE bool scheduler_looks_at(const struct thrum_sched *sched, const struct thrum_pool *pool);
/* Is there something in one of its pools? */
SIGSAFE bool scheduler_has_work(const struct thrum_sched *sched);

/* When to look at one of its pools again though nothing was pushed; TIMER_NEVER. */
INSIDE uint64_t scheduler_wait_until(const struct thrum_sched *sched);

/* The number of the present runtime, or of the next one. */
uint32_t scheduler_runtime(void);

/* There is no runtime any more: no worker or thread has a scheduler. */
void scheduler_forget(void);
void scheduler_fork_child(void);

/* Under the worker's sched_lock: the worker must switch to this one; NULL: the default. */
void scheduler_want_locked(struct worker *worker, struct thrum_sched *sched);

/* Runs the worker's scheduler until another is wanted, or none since this one was stopped. */
void scheduler_run(struct worker *worker);

#endif
