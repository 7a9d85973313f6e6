// SPDX-License-Identifier: Apache-2.0
/* See waiters.h. */
#include "sync/waiters.h"

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
            waiter->listed = false; /* not with the object */
            claimed++;
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
        leave(); /* whoever wants to preempt us may */
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
        waiter->result = result;
        waiter_wake(worker, waiter);
        if (++woken % WAITERS_BATCH == 0) {
            leave();
            worker = enter();
        }
    }
}
