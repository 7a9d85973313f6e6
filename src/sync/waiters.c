// SPDX-License-Identifier: Apache-2.0
/* See waiters.h. */
#include "sync/waiters.h"

#include "thrum/thrum.h"

/* --- giving up ---------------------------------------------------------------------------------------- */

void waiter_hold(struct waiter *waiter) {
    uint32_t fate = FATE_LISTED;
    if (cas_acq_rel(&waiter->fate, &fate, FATE_GONE)) /* pairs with waiter_return's cas and store */
        return;
    store_release(&waiter->fate, FATE_CALLED); /* pairs with waiter_return */
    /* Pairs with waiter_return's store. */
    for (unsigned tries = 0; load_acquire(&waiter->fate) != FATE_GONE; tries++)
        backoff(tries); /* its last look at the object comes before the caller's */
}

void waiter_dismiss(struct waiter *waiter) {
    waiter_hold(waiter);
    store_release(&waiter->fate, FATE_DISMISSED); /* pairs with wait_for_dismissal */
}

/* The waker is on another worker, and busy; ours may do something else meanwhile. */
INSIDE static void wait_for_dismissal(const struct waiter *waiter) {
    /* Pairs with waiter_dismiss and waiters_wake. */
    for (unsigned tries = 0; load_acquire(&waiter->fate) != FATE_DISMISSED; tries++) {
        leave();
        thrum_yield();
        backoff(tries);
        enter();
    }
}

bool waiter_return(struct waiter *waiter, uint32_t *word, uint32_t *now) {
    uint32_t fate = FATE_LISTED;
    if (cas_acq_rel(&waiter->fate, &fate, FATE_BACK)) { /* this and the next two pair with waiter_hold */
        for (unsigned tries = 0; load_acquire(&waiter->fate) != FATE_CALLED; backoff(tries++))
            if (word_try_lock(word, now))
                return true;
        store_release(&waiter->fate, FATE_GONE);
    }
    wait_for_dismissal(waiter);
    return false;
}

void waiter_stay(struct waiter *waiter, uint32_t *word, uint32_t now) {
    store_relaxed(&waiter->fate, FATE_LISTED); /* no thread reads it without SPIN */
    word_unlock(word, now);
    wait_for_dismissal(waiter);
}

/* --- lists -------------------------------------------------------------------------------------------- */

struct waiter *waiters_take_next(struct waiters *list, struct waiter *first) {
    struct waiter *waiter = first;
    do {
        waiter_dismiss(waiter);
        waiter = list->first;
        if (waiter == NULL)
            return NULL;
        waiters_remove(list, waiter);
    } while (!waiter_claim(waiter));
    return waiter;
}

void waiters_splice(struct waiters *list, struct waiters *more) {
    if (more->first == NULL)
        return;
    more->first->prev = list->last;
    if (list->last != NULL)
        list->last->next = more->first;
    else
        list->first = more->first;
    list->last = more->last;
    *more = (struct waiters){.first = NULL};
}

unsigned waiters_take_batch(struct waiters *list, uint32_t tag, struct waiters *taken, bool *more) {
    unsigned claimed = 0;
    struct waiter *waiter = list->first;
    for (unsigned i = 0; i < WAITERS_BATCH; i++, waiter = list->first) {
        if (waiter == NULL || (int32_t)(waiter->tag - tag) > 0)
            break;
        waiters_remove(list, waiter);
        if (waiter_claim(waiter)) {
            waiters_add(taken, waiter);
            claimed++;
        } else if (taken->keeps_all) {
            waiter_hold(waiter);
            waiters_add(taken, waiter);
        } else {
            waiter_dismiss(waiter);
        }
    }
    *more = waiter != NULL && (int32_t)(waiter->tag - tag) <= 0;
    return claimed;
}

uint32_t waiters_take_all(struct waiters *list, uint32_t *word, uint32_t now, uint32_t tag,
                          struct waiters *taken) {
    if (!list->contested) {
        waiters_splice(taken, list);
        return now;
    }
    for (bool more;;) {
        waiters_take_batch(list, tag, taken, &more);
        if (!more)
            return now;
        word_unlock(word, now);
        leave(); /* it may be preempted now */
        enter();
        now = word_lock(word);
    }
}

/* A node is gone when its unit is awake: what follows it is read before. */
void waiters_wake(struct waiters *list, int result) {
    struct worker *worker = worker_here();
    unsigned woken = 0;
    for (struct waiter *waiter = list->first, *next; waiter != NULL; waiter = next) {
        next = waiter->next;
        if (__builtin_expect(waiter->contested, 0)) {     /* not claimed, but held */
            store_release(&waiter->fate, FATE_DISMISSED); /* pairs with wait_for_dismissal */
            continue;
        }
        waiter->result = result;
        waiter_wake(worker, waiter);
        if (++woken % WAITERS_BATCH == 0) {
            leave();
            worker = enter();
        }
    }
}
