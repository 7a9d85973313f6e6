// SPDX-License-Identifier: Apache-2.0
/* Pools and schedulers: where threads wait to be run, and who runs next.
 *
 * By default every worker has a run queue of its own (newest first; idle workers steal the oldest) and the scheduler
 * that goes with it, and nothing here is needed. A *pool* is another place to wait: a thread with the attribute `pool`
 * goes there whenever it can run, and stays there until some scheduler that has the pool takes it: without one, for
 * ever, as nobody can know whether one is to come. A *scheduler* decides which of its pools a worker looks at next; it
 * is either one of the library's or a function of the user's own, which pops threads and runs them:
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
    THRUM_POOL_DEQUE, /* newest first, but thrum_pool_steal takes the oldest; who yields is the oldest then */
};

/* A pool of the user's own. Each function gets `data`; any worker, and any external kernel thread that wakes a
 * thread, may call push, so the functions lock for themselves. All but destroy run where the caller cannot be
 * preempted: they must be brief, must not wait for another thread, hence take no lock that is taken elsewhere as well
 * (malloc has such), and must call nothing of this library but what says so.
 *
 * A worker that has found nothing sleeps until something is pushed into one of its pools, which the library sees by
 * itself. A pool that has something to give without a push, since it keeps threads back for a time, say, or asks a device,
 * names by `wait` the moment at which it is to be looked at again. It must not wait inside: its worker would not hear of
 * other pools, of threads that are bound to it or belong to nobody, of timers, or that it is to stop. */
struct thrum_pool_ops {
    void (*push)(void *data, thrum_t thread); /* cannot fail: link threads through thrum_link */
    thrum_t (*pop)(void *data);               /* NULL: empty */
    size_t (*size)(void *data);               /* how many pop would give now; may be out of date */
    void (*destroy)(void *data);              /* NULL: nothing to do */
    /* NULL, or up to `most` at once; returns how many. */
    size_t (*pop_many)(void *data, thrum_t *threads, size_t most);
    /* NULL, or until when (ns, <thrum/time.h>) to wait for it, UINT64_MAX: for a push. Asked before each sleep of a worker
     * whose scheduler has this pool, or wait of a thread that is such a scheduler, and when one that runs a thread finds that
     * nobody else is to run, or one that runs a function of a scheduler's (both in a signal handler). */
    uint64_t (*wait)(void *data);
};

/* A word of the thread's for the pool that it is in. From: a pool's functions. */
thrum_t *thrum_link(thrum_t thread);

/* From: ULT, external. Errors: ENOMEM; EINVAL not a kind, or one of the functions push, pop and size is NULL. */
int thrum_pool_create(thrum_pool_t *pool, enum thrum_pool_kind kind);
int thrum_pool_create_user(thrum_pool_t *pool, const struct thrum_pool_ops *ops, void *data);

/* No thread is in it, not even one that a pool of the user's own keeps back, and no scheduler or thread is to use it any more.
 * Looks at each thread that there is, if one was ever in it. Errors: EBUSY it is not empty (by `size`), a scheduler that was
 * created with it has not been destroyed, or a thread that would come to it again has not ended (of those that are detached
 * the ones that wait count). From: ULT, external. */
int thrum_pool_destroy(thrum_pool_t pool);

/* How many wait in it now. From: ULT, external. */
size_t thrum_pool_size(thrum_pool_t pool);

/* Takes the next one out: the caller must run it, or push it again. NULL: empty. From: ULT, external. */
thrum_t thrum_pool_pop(thrum_pool_t pool);
size_t thrum_pool_pop_many(thrum_pool_t pool, thrum_t *threads, size_t most);
/* The same for who helps another with his pool: of a deque pool the oldest, of the others as thrum_pool_pop. */
thrum_t thrum_pool_steal(thrum_pool_t pool);
/* Puts one that was popped into this pool, which becomes its own. From: ULT, external. */
void thrum_pool_push(thrum_pool_t pool, thrum_t thread);

/* --- schedulers --------------------------------------------------------------------------------------- */

typedef struct thrum_sched *thrum_sched_t;

enum thrum_sched_kind {
    THRUM_SCHED_FIRST,       /* always the first pool that is not empty: pools are levels of priority */
    THRUM_SCHED_ROUND_ROBIN, /* one of each pool in turn */
    THRUM_SCHED_EXHAUST,     /* a pool until it is empty, then the next */
    THRUM_SCHED_RANDOM, /* its first pool, then the others, from one on that is drawn: work stealing among pools */
};

enum { THRUM_SCHED_POOLS_MAX = 64 };

/* `pools` are `count`, 1 to THRUM_SCHED_POOLS_MAX, and outlive the scheduler. Errors: ENOMEM; EINVAL not a kind, no pool or
 * too many. From, of all that create and destroy: ULT, external. RANDOM after Blumofe and Leiserson, "Scheduling
 * Multithreaded Computations by Work Stealing", JACM 1999. */
int thrum_sched_create(thrum_sched_t *sched, enum thrum_sched_kind kind, const thrum_pool_t *pools,
                       unsigned count);
/* Work stealing by levels of priority: of `queues` queues, each of which has `levels` pools, the highest level first
 * (pools[queue * levels + level]), it serves number `own`, always the first level that has something; when all of them are
 * empty it steals from another queue: from the highest level that any has something in, from one that is drawn. For each
 * worker one such scheduler with the same pools, mostly of THRUM_POOL_DEQUE, and a number of its own. A thread is put
 * into the level that its pool says, and moved to another by thrum_migrate_to_pool. Where threads are preempted, one
 * that comes into a higher level, also out of a sleep, interrupts a worker that runs a lower one. Errors: ENOMEM; EINVAL no
 * level, no such queue, or more than THRUM_SCHED_POOLS_MAX pools.
 *
 * After the scheduler for simulation and analysis of Shiina, Iwasaki, Taura and Balaji, "Lightweight Preemptive
 * User-Level Threads", PPoPP 2021. */
int thrum_sched_create_stealing(thrum_sched_t *sched, const thrum_pool_t *pools, unsigned queues,
                                unsigned levels, unsigned own);
/* `run` returns when thrum_sched_stopping says so. If it returns before, that is as after thrum_sched_stop: it is not
 * called again, and what is in its pools waits there for another scheduler. It runs on its worker's own stack, where it
 * must not wait: what may wait answers EPERM there, or says so in one line and aborts where it has no error to answer.
 * It has to end by returning. Stacked, by thrum_sched_spawn, it is a thread as others are: it may wait, thrum_exit, and
 * be cancelled. */
int thrum_sched_create_user(thrum_sched_t *sched, void (*run)(thrum_sched_t sched, void *data), void *data,
                            const thrum_pool_t *pools, unsigned count);
/* No worker and no thread has it; none does when the runtime has ended. Errors: EBUSY one does: also one that has been
 * told to go, by thrum_worker_set_sched or thrum_sched_stop, and has not come to it yet. Who cannot join a thread for
 * that tries again, and yields or sleeps in between. */
int thrum_sched_destroy(thrum_sched_t sched);

/* The time slice, THRUM_SLICE_MIN to THRUM_SLICE_MAX microseconds (<thrum/preempt.h>), of the threads that it runs, but for
 * those that have one of their own by thrum_attr_set_slice; 0: the runtime's. A scheduler that is stacked takes it when its
 * function begins. From: ULT, external. Errors: EINVAL too short or too long. */
int thrum_sched_set_slice(thrum_sched_t sched, unsigned slice);

/* What a scheduler function calls. From: that function only. */
bool thrum_sched_stopping(thrum_sched_t sched);
thrum_pool_t thrum_sched_pool(thrum_sched_t sched, unsigned i); /* NULL: there are not so many */
/* Runs the thread until it waits, yields, ends or is preempted; then one that is bound to the worker, if there is one, and
 * where a thread was preempted while it waited in the kernel, one that may have what that waits for. */
void thrum_run(thrum_t thread);
/* Nothing was found: returns when something may be in one of its pools, by a push or since their `wait` says so, when it is
 * to stop, and now and then without. On a worker it helps with what is no pool's meanwhile, and sleeps; one that is stacked
 * waits as threads do, not in a region (<thrum/preempt.h>), and its worker goes on with others: a cancellation point then.
 * Where something is in its pools already, others have one turn. */
void thrum_sched_idle(thrum_sched_t sched);

/* --- workers ------------------------------------------------------------------------------------------ */

/* Worker number `worker` of thrum_workers() goes over to this scheduler, or with NULL back to its own run queue, when
 * what runs on it waits, yields, ends or is preempted next. Threads in its run queue stay there for thieves. Numbers may have
 * gaps (thrum_worker_add).
 * From: ULT, external. Errors: EINVAL no such worker. EBUSY another worker has this scheduler. */
int thrum_worker_set_sched(unsigned worker, thrum_sched_t sched);

/* A scheduler as a thread of its own, that takes turns with what else is in the pool that `attr` says: schedulers can be
 * stacked; a push then wakes each that waits for another, on the stack of who pushes, of which each takes some hundred bytes.
 * Ends when thrum_sched_stop has been called and its function returns. Errors: as thrum_spawn; EBUSY a worker or another
 * thread has this scheduler; EINVAL `attr` says a tasklet. From: ULT, external. */
int thrum_sched_spawn(thrum_t *thread, const thrum_attr_t *attr, thrum_sched_t sched);

/* Its function is to return. A thread then ends; a worker goes back to its own run queue, as by
 * thrum_worker_set_sched(worker, NULL). One that nobody has is left as it is. From: ULT, external. */
void thrum_sched_stop(thrum_sched_t sched);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
