// SPDX-License-Identifier: Apache-2.0
/* See mutex.h. */
#include "sync/mutex.h"

#include <errno.h>

#include "sched/worker.h"

bool mutex_own_or_wait(struct mutex *mutex, struct thrum_unit *unit) {
    for (;;) {
        uint32_t word = load_relaxed(&mutex->word);
        if (word & MUTEX_SPIN) {
            arch_relax();
        } else if (word == 0) {
            if (cas_acquire(&mutex->word, &word, MUTEX_LOCKED))
                return true;
        } else if (cas_acquire(&mutex->word, &word, word | MUTEX_SPIN)) {
            unit->next = NULL;
            if (word & MUTEX_WAITERS)
                mutex->last->next = unit;
            else
                mutex->first = unit;
            mutex->last = unit;
            store_release(&mutex->word, MUTEX_LOCKED | MUTEX_WAITERS);
            return false;
        }
    }
}

void mutex_unlock_slow(struct worker *worker, struct mutex *mutex) {
    for (;;) {
        uint32_t word = load_relaxed(&mutex->word);
        if (word & MUTEX_SPIN) {
            arch_relax();
        } else if (!(word & MUTEX_WAITERS)) {
            if (cas_acq_rel(&mutex->word, &word, 0))
                return;
        } else if (cas_acq_rel(&mutex->word, &word, word | MUTEX_SPIN)) {
            struct thrum_unit *heir = mutex->first;
            mutex->first = heir->next;
            store_release(&mutex->word, heir->next != NULL ? MUTEX_LOCKED | MUTEX_WAITERS : MUTEX_LOCKED);
            unit_wake(worker, heir);
            return;
        }
    }
}

void thrum_mutex_lock(thrum_mutex_t *object) {
    struct mutex *mutex = mutex_of(object);
    uint32_t word = 0;
    if (__builtin_expect(cas_acquire(&mutex->word, &word, MUTEX_LOCKED), 1))
        return;
    struct worker *worker = enter();
    struct thrum_unit *self = unit_self(worker);
    unit_announce(self);
    if (!mutex_own_or_wait(mutex, self))
        unit_block(worker, self);
    leave();
}

int thrum_mutex_try_lock(thrum_mutex_t *object) {
    uint32_t word = 0;
    return cas_acquire(&mutex_of(object)->word, &word, MUTEX_LOCKED) ? 0 : EBUSY;
}

void thrum_mutex_unlock(thrum_mutex_t *object) {
    struct mutex *mutex = mutex_of(object);
    uint32_t word = MUTEX_LOCKED;
    if (__builtin_expect(cas_acq_rel(&mutex->word, &word, 0), 1))
        return;
    mutex_unlock_slow(enter(), mutex);
    leave();
}
