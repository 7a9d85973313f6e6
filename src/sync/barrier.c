// SPDX-License-Identifier: Apache-2.0
/* The barrier. The last to arrive begins the next generation and wakes the others. A waiter's tag is its generation:
 * a thread that arrives again while the last of the generation before still looks for its waiters belongs to the next
 * and stays in the list.
 *
 * A waiter that gives up is no longer counted; but if it was dismissed it took part. If its generation is over by the
 * time it has SPIN, the last of them is about to dismiss it. It waits for that, and the last one dismisses no waiter
 * before it is done with the barrier, which a participant may free. */
#include <errno.h>

#include "base/misuse.h"
#include "sched/cancel.h"
#include "sync/queue.h"
#include "thrum/sync.h"

struct barrier {
    struct queue queue;           /* word: nothing of its own */
    uint32_t parties;             /* r/o */
    uint32_t arrived, generation; /* under SPIN */
};

_Static_assert(sizeof(struct barrier) <= sizeof(thrum_barrier_t), "thrum/sync.h leaves room for it");
_Static_assert(offsetof(struct barrier, parties) == 4 * sizeof(uint64_t), "THRUM_BARRIER_INITIALIZER");

static struct barrier *barrier_of(thrum_barrier_t *barrier) {
    return (struct barrier *)(void *)barrier;
}

/* SPIN is held; gives it back. Not preempted in between where waiters are held until they are dismissed: they do not
 * sleep, and might keep this thread from running. */
INSIDE static void open_for_all(struct barrier *barrier, uint32_t word) {
    struct waiters taken = {.keeps_all = true};
    uint32_t generation = barrier->generation++;
    bool holds = barrier->queue.waiters.contested;
    barrier->arrived = 0;
    if (holds)
        enter_twice();
    word = waiters_take_all(&barrier->queue.waiters, &barrier->queue.word, word, generation, &taken);
    word_unlock(&barrier->queue.word, queue_word(&barrier->queue, word));
    waiters_wake(&taken, 0);
    if (holds)
        leave_once();
}

/* True: it was too late to give up. */
INSIDE static bool give_up(struct barrier *barrier, struct waiter *waiter) {
    uint32_t word;
    if (!waiter_return(waiter, &barrier->queue.word, &word))
        return true;
    if (barrier->generation != waiter->tag) { /* between two batches of open_for_all */
        waiter_stay(waiter, &barrier->queue.word, word);
        return true;
    }
    waiters_remove(&barrier->queue.waiters, waiter);
    barrier->arrived--;
    word_unlock(&barrier->queue.word, queue_word(&barrier->queue, word));
    return false;
}

INSIDE static int wait_inside(struct worker *worker, struct barrier *barrier, uint64_t deadline, bool *last) {
    struct wait wait = {.unit = unit_self(worker)};
    struct waiter waiter = waiter_make(&wait, false);
    uint32_t word = word_lock(&barrier->queue.word);
    *last = ++barrier->arrived == barrier->parties;
    if (*last) {
        open_for_all(barrier, word);
        return 0;
    }
    waiter.tag = barrier->generation;
    deadline = cancel_point_of_lock(worker, deadline);
    waiter.contested = deadline != TIMER_NEVER;
    waiter_await(wait.unit, AWAITS_BARRIER, barrier, deadline);
    waiters_add(&barrier->queue.waiters, &waiter);
    word_unlock(&barrier->queue.word, word | WORD_WAITERS);
    return waiter_block(worker, &wait, deadline) || give_up(barrier, &waiter) ? 0 : ETIMEDOUT;
}

/* --- thrum_barrier_t ---------------------------------------------------------------------------------- */

int thrum_barrier_init(thrum_barrier_t *barrier, unsigned parties) {
    if (is_null(barrier))
        return EINVAL;
    if (parties == 0)
        return EINVAL;
    *barrier_of(barrier) = (struct barrier){.parties = parties};
    return 0;
}

int thrum_barrier_wait_until(thrum_barrier_t *barrier, uint64_t deadline, bool *last) {
    if (is_null(barrier))
        return EINVAL;
    bool is_last;
    int error = wait_inside(enter(), barrier_of(barrier), deadline, &is_last);
    leave();
    if (last != NULL)
        *last = is_last;
    return cancel_act_of_lock(error);
}

bool thrum_barrier_wait(thrum_barrier_t *barrier) {
    if (is_null(barrier))
        misuse_null(__func__);
    bool last;
    thrum_barrier_wait_until(barrier, TIMER_NEVER, &last);
    return last;
}

int thrum_barrier_destroy(thrum_barrier_t *barrier) {
    if (is_null(barrier))
        return EINVAL;
    if (load_acquire(&barrier_of(barrier)->queue.word) & WORD_WAITERS) /* pairs with word_unlock */
        return misuse(EBUSY, "thrum_barrier_destroy: a thread still waits at this barrier");
    return 0;
}
