// SPDX-License-Identifier: Apache-2.0
/* The waiters of an object: a list of nodes that lie on the waiters' stacks, oldest first.
 *
 * A waiter is *contested* if something other than its wakers may end its wait: it has a deadline, or it waits for
 * several objects at once. A contested waiter must be claimed (wait_claim); the others belong to their waker as soon
 * as they are off the list, and cost no atomic operation.
 *
 * Lists and nodes are under the object's SPIN (word.h), until the node has been taken off. A waiter that was claimed
 * stays blocked until unit_wake: until then its node, which may be chained to others, belongs to its waker.
 *
 * A waiter whose deadline has come, or that another object has woken, comes back to take its node off, under SPIN.
 * But the waker that took it off and could not claim it may be the last user of the object. So a waiter that cannot
 * be claimed is dismissed, and does not touch the object any more. `fate` of the node says so:
 *
 *   FATE_LISTED     -> GONE (cas by the waker), BACK (cas by the waiter, which from here on tries to get SPIN)
 *   FATE_BACK       -> CALLED (store by the waker), LISTED (by the waiter, with SPIN: waiter_stay)
 *   FATE_CALLED     -> GONE (store by the waiter, which does not try again)
 *   FATE_GONE       the waiter does not touch the object. -> DISMISSED (store by the waker)
 *   FATE_DISMISSED  nor does the waker touch the node
 *
 * From LISTED or BACK to GONE the waker has SPIN, so the waiter cannot have it; and one that is BACK is in a
 * non-preemptible region with nothing else to do, so the waker's wait is short, wherever that is: in a tasklet, too,
 * on the worker that the waiter will want to run on. Where a waiter that is released may free the object (barrier.c)
 * it is held, GONE, until the waker does not need that any more. Modelled in tests/model/dismiss.pml.
 *
 * So a waker works in two steps. Under SPIN it takes off and claims the waiters to wake; then it gives SPIN back,
 * which is the last that it does to the object; then it wakes them. Between two batches of a long list SPIN is given
 * back briefly, but no waiter is woken before the new state is known (waiters_take_all). */
#ifndef THRUM_SYNC_WAITERS_H
#define THRUM_SYNC_WAITERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/inside.h"
#include "sched/wait.h"
#include "sched/worker.h"
#include "sync/word.h"

struct waiter {
    struct waiter *next, *prev;
    struct wait *wait; /* r/o */
    void *value;       /* the object's own; r/o: a channel's element */
    uint32_t tag;      /* the object's own; r/o: a barrier's generation */
    int result;        /* 0, unless the waker says what is wrong */
    uint32_t fate;     /* enum waiter_fate; of one that is contested */
    bool contested;    /* until it has been claimed */
    bool fired;        /* it was contested, and this is the node by which it was claimed */
};

enum waiter_fate { FATE_LISTED, FATE_BACK, FATE_CALLED, FATE_GONE, FATE_DISMISSED };

struct waiters {
    struct waiter *first, *last;
    bool contested; /* some may be; until the list is empty again */
    bool keeps_all; /* of a waker's own list: those are put there, too, that could only be held */
};

static inline struct waiter waiter_make(struct wait *wait, bool contested) {
    return (struct waiter){.wait = wait, .contested = contested};
}

/* Before `next`, which is in the list; NULL: at its end. */
static inline void waiters_add_before(struct waiters *list, struct waiter *waiter, struct waiter *next) {
    struct waiter *prev = next != NULL ? next->prev : list->last;
    waiter->next = next;
    waiter->prev = prev;
    if (next != NULL)
        next->prev = waiter;
    else
        list->last = waiter;
    if (prev != NULL)
        prev->next = waiter;
    else
        list->first = waiter;
    if (__builtin_expect(waiter->contested, 0))
        list->contested = true;
}

static inline void waiters_add(struct waiters *list, struct waiter *waiter) {
    waiters_add_before(list, waiter, NULL);
}

static inline void waiters_remove(struct waiters *list, struct waiter *waiter) {
    if (waiter->next != NULL)
        waiter->next->prev = waiter->prev;
    else
        list->last = waiter->prev;
    if (waiter->prev != NULL)
        waiter->prev->next = waiter->next;
    else
        list->first = waiter->next;
    if (__builtin_expect(list->contested, 0) && list->first == NULL)
        list->contested = false;
}

/* True: it is the caller's to wake. False: its deadline has come, or another object has it. */
INSIDE static inline bool waiter_claim(struct waiter *waiter) {
    if (waiter->contested) {
        if (!wait_claim(waiter->wait))
            return false;
        waiter->contested = false;
        waiter->fired = true;
    }
    return true;
}

/* With SPIN. One that is off the list, but could not be claimed. */
INSIDE void waiter_hold(struct waiter *waiter);
INSIDE void waiter_dismiss(struct waiter *waiter);

/* By a waiter that gives up, or that another object has woken. True: it has SPIN, its node is in the list, and the word
 * is in *now. False: it was dismissed. Inside, perhaps on another worker when it returns. */
INSIDE bool waiter_return(struct waiter *waiter, uint32_t *word, uint32_t *now);

/* It has come back, and found that a waker is about to dismiss it: gives SPIN back and waits for that. Likewise. */
INSIDE void waiter_stay(struct waiter *waiter, uint32_t *word, uint32_t now);

/* The first has been taken off, and could not be claimed. */
INSIDE __attribute__((cold)) struct waiter *waiters_take_next(struct waiters *list, struct waiter *first);

/* Takes the first off that can be claimed. */
INSIDE static inline struct waiter *waiters_take(struct waiters *list) {
    struct waiter *waiter = list->first;
    if (waiter == NULL)
        return NULL;
    waiters_remove(list, waiter);
    if (__builtin_expect(!waiter_claim(waiter), 0))
        return waiters_take_next(list, waiter);
    return waiter;
}

/* It is about to wait: as unit_await, unless it must not. */
INSIDE static inline void waiter_await(struct thrum_unit *self, enum awaits kind, const void *object,
                                       uint64_t deadline) {
    unit_expect_may_wait(self, kind);
    unit_await_until(self, kind, object, deadline);
}

INSIDE static inline void waiter_wake(struct worker *worker, struct waiter *waiter) {
    unit_wake(worker, waiter->wait->unit);
}

/* The waiter is in a list, its unit has announced itself. False: the deadline came first. `worker` may be another one
 * when this returns. */
INSIDE static inline bool waiter_block(struct worker *worker, struct wait *wait, uint64_t deadline) {
    if (deadline != TIMER_NEVER)
        return unit_block_until(worker, wait, deadline);
    unit_block(worker, wait->unit);
    return true;
}

/* All of `more`, none of which is contested any more, comes behind `list`; `more` is empty then. */
void waiters_splice(struct waiters *list, struct waiters *more);

enum { WAITERS_BATCH = 64 };

/* Moves a batch of them to `taken`, claimed, and says how many; those whose tag is later than `tag` stay. *more: there
 * are more. */
INSIDE unsigned waiters_take_batch(struct waiters *list, uint32_t tag, struct waiters *taken, bool *more);

/* Moves them all to `taken`, claimed; waiters whose tag is later than `tag` stay. The caller has the SPIN of *word,
 * whose value is `now`, and has it again when this returns. It is given back in between, after each batch, unless
 * none is contested: then the list is taken as it is. No waiter is woken before this returns: so threads that come
 * meanwhile are included, and all are no more than there are threads. Returns the value of *word. `worker_here` may
 * be another one then. */
INSIDE uint32_t waiters_take_all(struct waiters *list, uint32_t *word, uint32_t now, uint32_t tag,
                                 struct waiters *taken);

/* Wakes, or dismisses, all of a list that is the caller's own, with this result. Inside, and inside again, perhaps on
 * another worker, when it returns. */
INSIDE void waiters_wake(struct waiters *list, int result);

#endif
