// SPDX-License-Identifier: Apache-2.0
/* Relief for workers that are stuck.
 *
 * A preempted thread may have a lock of libc's, or of the program's that kernel threads share. Who comes to that lock waits
 * for it in the kernel. A thread is preempted there at the next tick, and the holder gets its turn. But what is not
 * preempted holds its worker up: a tasklet, the function of a scheduler, a thread of mode NONE, a region; and if the holder
 * can only go on where that worker looks, it never does.
 *
 * So there is one worker more, which nobody sees: it sleeps, nothing is bound to it, and it looks for nothing. The tick that
 * finds such a wait (by the instruction at which it came) asks it: then it runs one of those who were preempted, from
 * where the stuck worker would have found it, until that waits, yields, ends or is preempted; and so on at each tick, as
 * long as the wait lasts. It looks for nobody else: only these can have such a lock, and a tasklet or a newcomer of mode
 * NONE might get stuck as well. (Who waits for the end of one that ends there goes on there, of whatever mode.) It does not
 * jump in for who only computes: programs may count on what is not preempted being alone on its worker; a moment after a
 * wait it may not be.
 *
 * In pools that have an order of their own it may be asked for although who waits can be preempted: by a thread that comes
 * before the one that has the lock, so that its scheduler chooses it time and again. Each tick that preempts one of a pool in
 * such a wait asks.
 *
 * Invariants. Nobody is passed over for ever: each queue is first in turn, others go to the end of theirs, and in pools,
 * which have an order of their own, those who were preempted are taken in turn, as far as it looks. What it has left of its
 * own goes to all before it sleeps. Of a scheduler's pools it looks at the library's own kinds only: the
 * program's functions might wait for the same lock, inside.
 *
 * Modelled in tests/model/relief.pml. */
#include "os/futex.h"
#include "preempt/preempt.h"
#include "sched/pool.h"
#include "sched/scheduler.h"
#include "sched/worker.h"
#include "thrum/thrum.h"

/* So far it looks at one time. */
enum { FAR = 4096, FAR_IN_POOL = 64 };

enum { QUEUES = 4 };

#define ANYWAY UINT64_MAX /* in `stuck`: whoever runs there now */

static uint32_t asked; /* futex, the relief's */
static uint32_t over;  /* nobody is relieved any more */
static uint32_t turn;  /* its own */

bool preempt_relieves(void) {
    return preempt.on && preempt_has_spares();
}

void relief_start(void) {
    store_relaxed(&asked, 0);
    store_relaxed(&over, 0);
}

void relief_wake(void) {
    store_release(&asked, 1);
    futex_wake(&asked, 1);
}

void relief_ask(struct worker *stuck) {
    store_release(&stuck->tick.stuck, load_relaxed(&stuck->counters.switches) + 1);
    relief_wake();
}

void relief_ask_anyway(struct worker *worker) {
    store_release(&worker->tick.stuck, ANYWAY);
    relief_wake();
}

/* Once for each time that it was asked for. A worker that has switched meanwhile is not stuck any more. */
static bool is_stuck(struct worker *worker) {
    if (load_relaxed(&worker->tick.stuck) == 0)
        return false;
    uint64_t then = exchange_acquire(&worker->tick.stuck, UINT64_C(0));
    return (then == ANYWAY || then == load_relaxed(&worker->counters.switches) + 1) && !load_seq_cst(&over);
}

/* It may be just taken once more. */
void relief_close(struct worker *home) {
    store_seq_cst(&over, 1);
    while (worker_here() != home)
        thrum_yield();
}

/* Or has a block for life: the primary takes its own along, and is away from its kernel thread then (primary.c). */
static bool was_preempted(const struct thrum_unit *unit) {
    return unit->tcb != NULL;
}

static struct thrum_unit *take_from_fifo(struct fifo *fifo) {
    struct thrum_unit *unit;
    uint32_t count = load_relaxed(&fifo->count);
    for (uint32_t i = 0; i < count && i < FAR && (unit = fifo_pop(fifo)) != NULL; i++) {
        if (was_preempted(unit))
            return unit;
        unit_wake_elsewhere(NULL, unit); /* who parked meanwhile did not see it */
    }
    return NULL;
}

/* What is not taken goes to all. */
static struct thrum_unit *take_from_rings(struct worker *stuck) {
    for (uint32_t i = 0; i < FAR; i++) {
        struct thrum_unit *unit = yield_ring_pop(&stuck->yields);
        if (unit == NULL && !deque_is_empty(&stuck->deque))
            unit = deque_steal(&stuck->deque);
        if (unit == NULL || was_preempted(unit))
            return unit;
        unit_wake_elsewhere(NULL, unit);
    }
    return NULL;
}

/* The next in turn of those who were preempted. All others go back in their order: which comes first decides where they are
 * put. */
static struct thrum_unit *take_from_pool(struct thrum_pool *pool, uint32_t which) {
    struct thrum_unit *units[FAR_IN_POOL], *taken = NULL;
    unsigned count = 0, preempted = 0;
    while (count < FAR_IN_POOL && (units[count] = pool->ops.pop(pool->data)) != NULL)
        preempted += was_preempted(units[count++]);
    unsigned skip = preempted > 0 ? which % preempted : 0;
    for (unsigned i = 0; i < count && preempted > 0 && taken == NULL; i++)
        if (was_preempted(units[i]) && skip-- == 0) {
            taken = units[i];
            units[i] = NULL;
        }
    for (unsigned i = 0; i < count; i++) {
        struct thrum_unit *other = units[pool->newest_first ? count - 1 - i : i];
        if (other != NULL)
            pool_push(pool, other);
    }
    return taken;
}

/* As long as the lock is held the scheduler runs there, and has its pools. Which of them is first, and who in it, are digits of
 * `turn` that take() does not look at: or some would never come together. */
static struct thrum_unit *take_from_pools(struct worker *stuck) {
    struct thrum_unit *unit = NULL;
    lock_acquire(&stuck->sched_lock);
    const struct thrum_sched *sched = stuck->sched;
    for (unsigned i = 0; sched != NULL && i < sched->count && unit == NULL; i++) {
        struct thrum_pool *pool = sched->pools[(turn / QUEUES + i) % sched->count];
        if (pool->is_ours)
            unit = take_from_pool(pool, turn / QUEUES / sched->count);
    }
    lock_release(&stuck->sched_lock);
    return unit;
}

/* Each of the four is first in turn: one in the first may take slice after slice. */
static struct thrum_unit *take(struct worker *stuck) {
    struct thrum_unit *unit = NULL;
    turn++;
    for (unsigned i = 0; i < QUEUES && unit == NULL; i++) {
        switch ((turn + i) % QUEUES) {
        case 0: unit = take_from_fifo(&stuck->inbox); break;
        case 1: unit = take_from_rings(stuck); break;
        case 2: unit = take_from_fifo(&scheduler.shared); break;
        default: unit = take_from_pools(stuck); break;
        }
    }
    return unit;
}

static void relieve(struct worker *worker) {
    for (uint32_t i = 0; i < load_acquire(&scheduler.count); i++) {
        struct worker *stuck = scheduler.workers[i];
        struct thrum_unit *unit = stuck != worker && is_stuck(stuck) ? take(stuck) : NULL;
        if (unit != NULL)
            worker_run(worker, unit);
    }
    worker_hand_over(worker);
}

/* A tick that comes while it waits is its last. */
void relief_loop(struct worker *worker) {
    while (!load_acquire(&scheduler.stopping)) {
        if (exchange_acquire(&asked, 0U) == 0) {
            futex_wait(&asked, 0);
            continue;
        }
        enter();
        worker->obeys = true; /* who waits or yields leaves it to its loop */
        worker->until_slow = 1;
        relieve(worker);
        leave();
    }
}
