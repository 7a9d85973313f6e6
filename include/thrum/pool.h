// SPDX-License-Identifier: Apache-2.0
/* Pools and schedulers: where runnable threads wait, and which one runs next.
 *
 * By default every worker has its own run queue (newest first; idle workers steal the oldest) and runs its own scheduling
 * loop, and nothing here is needed. A *pool* is another place for runnable threads. A thread with the attribute `pool` is
 * enqueued there whenever it becomes runnable, and stays until a scheduler that serves the pool takes it. Without such a
 * scheduler it stays there for ever, since the library cannot know whether one will come.
 *
 * A *scheduler* decides which of its pools a worker serves next. It is one of the library's, or a function of the user's
 * that pops threads and runs them:
 *
 *     static void evens_first(thrum_sched_t sched, void *arg) {
 *         (void)arg;
 *         while (!thrum_sched_stopping(sched)) {
 *             thrum_t thread = thrum_pool_pop(thrum_sched_pool(sched, 0));
 *             if (thread == NULL)
 *                 thread = thrum_pool_pop(thrum_sched_pool(sched, 1));
 *             if (thread != NULL)
 *                 thrum_run(thread);
 *             else
 *                 thrum_sched_idle(sched);
 *         }
 *     }
 *
 * After pools and schedulers of Argobots (Seo et al., "Argobots: A Lightweight Low-Level Threading and Tasking
 * Framework", IEEE TPDS 2018). */
#ifndef THRUM_POOL_H
#define THRUM_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "thrum/thrum.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* --- pools -------------------------------------------------------------------------------------------- */

enum thrum_pool_kind {
    THRUM_POOL_FIFO,     /* oldest first */
    THRUM_POOL_LIFO,     /* newest first */
    THRUM_POOL_PRIORITY, /* highest priority first (thrum_attr_set_priority), then oldest */
    THRUM_POOL_DEADLINE, /* earliest deadline first (thrum_attr_set_deadline), then oldest */
    THRUM_POOL_DEQUE, /* newest first, but thrum_pool_steal takes the oldest; a thread that yields becomes the oldest */
};

/* A pool of the user's own. Each function gets `data`. Any worker may call push, and so may any external kernel thread that
 * wakes a thread: the functions must lock for themselves. All but destroy run where the caller cannot be preempted. They
 * must be brief and must not wait for another thread: take no lock that other code takes as well (malloc takes such locks),
 * and call only functions of this library that say so.
 *
 * A worker that finds nothing sleeps until a thread is pushed into one of its pools; the library notices pushes itself. A
 * pool may also have something to give without a push, for example because it delays threads or polls a device. Its `wait`
 * then returns the time at which to ask again. `wait` itself must not block. Its worker would miss other pools, timers, a
 * request to stop, and threads that are bound to it or are in the workers' run queues. */
struct thrum_pool_ops {
    void (*push)(void *data, thrum_t thread); /* cannot fail: link threads through thrum_link */
    thrum_t (*pop)(void *data);               /* NULL: empty */
    size_t (*size)(void *data);               /* how many threads pop would give now; may be out of date */
    void (*destroy)(void *data);              /* NULL: nothing to do */
    /* NULL, or pops up to `most` threads at once; returns how many. */
    size_t (*pop_many)(void *data, thrum_t *threads, size_t most);
    /* NULL, or the time (ns, <thrum/time.h>) at which to ask the pool again; UINT64_MAX: only after a push. Called before
     * each sleep of a worker whose scheduler has this pool, and before each wait of a thread that is such a scheduler. Also
     * called in a signal handler: when a worker that runs a thread finds no other one to run, or while a worker runs a user
     * scheduler's function. */
    uint64_t (*wait)(void *data);
};

/* A word inside the thread, for the use of the pool that holds it. From: a pool's functions. */
thrum_t *thrum_link(thrum_t thread);

/* From: ULT, external. Errors: ENOMEM; EINVAL no such kind, or push, pop or size is NULL. */
int thrum_pool_create(thrum_pool_t *pool, enum thrum_pool_kind kind);
int thrum_pool_create_user(thrum_pool_t *pool, const struct thrum_pool_ops *ops, void *data);

/* The pool must be empty (a user's pool may not hold back a thread either), and no scheduler or thread may use it any more.
 * If a thread was ever in it, this visits every thread of the runtime. Errors: EBUSY it is not empty (by `size`), a scheduler
 * that was created with it has not been destroyed, or a thread that would be enqueued in it again has not ended (a detached
 * thread counts only while it waits). From: ULT, external. */
int thrum_pool_destroy(thrum_pool_t pool);

/* The number of threads in it now. From: ULT, external. */
size_t thrum_pool_size(thrum_pool_t pool);

/* Removes and returns the next thread: the caller must run it or push it again. NULL: empty. From: ULT, external. */
thrum_t thrum_pool_pop(thrum_pool_t pool);
size_t thrum_pool_pop_many(thrum_pool_t pool, thrum_t *threads, size_t most);
/* The same for a thief: takes the oldest from a deque pool, and acts as thrum_pool_pop on the others. */
thrum_t thrum_pool_steal(thrum_pool_t pool);
/* Puts a popped thread into this pool, which becomes the thread's pool. From: ULT, external. */
void thrum_pool_push(thrum_pool_t pool, thrum_t thread);

/* --- schedulers --------------------------------------------------------------------------------------- */

typedef struct thrum_sched *thrum_sched_t;

enum thrum_sched_kind {
    THRUM_SCHED_FIRST,       /* always the first pool that is not empty: pools are levels of priority */
    THRUM_SCHED_ROUND_ROBIN, /* one thread of each pool in turn */
    THRUM_SCHED_EXHAUST,     /* one pool until it is empty, then the next */
    THRUM_SCHED_RANDOM, /* its first pool, then the others from a random one on: work stealing among pools */
};

enum { THRUM_SCHED_POOLS_MAX = 1024 };

/* `pools` has `count` pools, 1 to THRUM_SCHED_POOLS_MAX; they must outlive the scheduler. Errors: ENOMEM; EINVAL no such
 * kind, no pool, or too many. From, for all functions that create and destroy: ULT, external. RANDOM after Blumofe and
 * Leiserson, "Scheduling Multithreaded Computations by Work Stealing", JACM 1999. */
int thrum_sched_create(thrum_sched_t *sched, enum thrum_sched_kind kind, const thrum_pool_t *pools,
                       unsigned count);
/* Work stealing with priority levels. There are `queues` queues of `levels` pools each, the highest level first:
 * pools[queue * levels + level]. The scheduler serves queue number `own`, always its first level that is not empty. If all
 * of them are empty it steals from another queue: from the highest level that is not empty in any of them, starting at a
 * random queue. Create one such scheduler for each worker, all with the same pools, mostly of THRUM_POOL_DEQUE, and each
 * with its own number. A thread is at the level of its pool; thrum_migrate_to_pool changes it. With preemption, a thread
 * that becomes runnable at a higher level, also by waking from a sleep, interrupts a worker that runs a lower one.
 * Errors: ENOMEM; EINVAL no level, no such queue, or more than THRUM_SCHED_POOLS_MAX pools.
 *
 * After the scheduler for simulation and analysis of Shiina, Iwasaki, Taura and Balaji, "Lightweight Preemptive
 * User-Level Threads", PPoPP 2021. */
int thrum_sched_create_stealing(thrum_sched_t *sched, const thrum_pool_t *pools, unsigned queues,
                                unsigned levels, unsigned own);
/* `run` must return when thrum_sched_stopping says so. An earlier return counts as thrum_sched_stop: `run` is not called
 * again, and what is in its pools waits for another scheduler. On a worker it runs on the worker's own stack, where it must
 * not wait. Functions that may wait return EPERM there, or print one line and abort if they return no error. It must end
 * by returning. As a thread of its own (thrum_sched_spawn) it is like any other thread: it may wait, call thrum_exit and
 * be cancelled. */
int thrum_sched_create_user(thrum_sched_t *sched, void (*run)(thrum_sched_t sched, void *data), void *data,
                            const thrum_pool_t *pools, unsigned count);
/* No worker and no thread may use the scheduler; none does after the runtime has ended. Errors: EBUSY one does, or was told
 * to leave it (thrum_worker_set_sched, thrum_sched_stop) and has not done so yet. A caller that cannot join a thread to
 * wait for that retries, with a yield or a sleep in between. */
int thrum_sched_destroy(thrum_sched_t sched);

/* The time slice of the threads that it runs, THRUM_SLICE_MIN to THRUM_SLICE_MAX microseconds (<thrum/preempt.h>); 0: the
 * runtime's. Threads with a slice of their own (thrum_attr_set_slice) keep it. A stacked scheduler adopts the slice when its
 * function begins. From: ULT, external. Errors: EINVAL too short or too long. */
int thrum_sched_set_slice(thrum_sched_t sched, unsigned slice);

/* The functions that a scheduler function calls. From: that function only. */
bool thrum_sched_stopping(thrum_sched_t sched);
thrum_pool_t thrum_sched_pool(thrum_sched_t sched, unsigned i); /* NULL: there are not so many */
/* Runs the thread until it waits, yields, ends or is preempted. Then runs one thread that is bound to the worker, if there
 * is one. If the thread was preempted while it waited in the kernel, it also runs one that it may be waiting for. */
void thrum_run(thrum_t thread);
/* To be called when all pools were empty. Returns when one of them may have a thread: after a push, or at the time that
 * `wait` named. It also returns when the scheduler must stop, and now and then without a reason. On a worker it runs threads that are in
 * no pool meanwhile, and sleeps. A stacked scheduler waits like a thread, not in a region (<thrum/preempt.h>): its worker
 * runs others, and this is a cancellation point. If a pool has a thread already, others run once. */
void thrum_sched_idle(thrum_sched_t sched);

/* --- workers ------------------------------------------------------------------------------------------ */

/* Worker number `worker` switches to this scheduler, or with NULL back to its own run queue. It does so when the thread that
 * it runs next waits, yields, ends or is preempted. Threads in its run queue stay there and can be stolen. Worker numbers may have
 * gaps (thrum_worker_add).
 * From: ULT, external. Errors: EINVAL no such worker; EBUSY another worker has this scheduler. */
int thrum_worker_set_sched(unsigned worker, thrum_sched_t sched);

/* Runs a scheduler as a thread of its own, which takes turns with the other threads of the pool in `attr`. Schedulers can be
 * stacked this way. A push then wakes each scheduler that waits for another one, on the pusher's stack, some hundred bytes
 * for each. The thread ends when thrum_sched_stop has been called and the function returns. Errors: as thrum_spawn; EBUSY a
 * worker or another thread has this scheduler; EINVAL `attr` asks for a tasklet. From: ULT, external. */
int thrum_sched_spawn(thrum_t *thread, const thrum_attr_t *attr, thrum_sched_t sched);

/* Asks the scheduler's function to return. Its thread then ends; its worker goes back to its own run queue, as with
 * thrum_worker_set_sched(worker, NULL). No effect on a scheduler that no worker or thread uses. From: ULT, external. */
void thrum_sched_stop(thrum_sched_t sched);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
