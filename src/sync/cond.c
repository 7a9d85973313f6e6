// SPDX-License-Identifier: Apache-2.0
/* The condition variable. Its list is under a spin lock that is held for a few instructions, in a non-preemptible
 * region. A waiter that is signalled is not woken but moved to its mutex (wait morphing), unless that is free. */
#include "sched/worker.h"
#include "sync/mutex.h"

struct cond {
    uint32_t lock;
    struct thrum_unit *first, *last; /* under lock; first is read by anybody: NULL, nobody waits */
    struct mutex *mutex;             /* under lock, of those who wait */
};

_Static_assert(sizeof(struct cond) <= sizeof(thrum_cond_t), "thrum.h leaves room for it");

static struct cond *cond_of(thrum_cond_t *cond) {
    return (struct cond *)(void *)cond;
}

static void acquire(struct cond *cond) {
    uint32_t free = 0;
    while (!cas_acquire(&cond->lock, &free, 1)) {
        free = 0;
        arch_relax();
    }
}

static void release(struct cond *cond) {
    store_release(&cond->lock, 0);
}

void thrum_cond_wait(thrum_cond_t *object, thrum_mutex_t *mutex) {
    struct cond *cond = cond_of(object);
    struct worker *worker = enter();
    struct thrum_unit *self = unit_self(worker);
    unit_announce(self);
    self->next = NULL;
    acquire(cond);
    cond->mutex = mutex_of(mutex);
    if (cond->first != NULL)
        cond->last->next = self;
    else
        store_relaxed(&cond->first, self);
    cond->last = self;
    release(cond);
    mutex_unlock_slow(worker, mutex_of(mutex));
    unit_block(worker, self);
    leave();
}

/* Who signals after having changed the condition under the mutex sees whoever waits for that: the waiter put itself
 * on the list before it let the mutex go. So an empty list read without the lock is nobody whom this must wake. */
static bool wake_first(struct cond *cond) {
    if (load_relaxed(&cond->first) == NULL)
        return false;
    struct worker *worker = enter();
    acquire(cond);
    struct thrum_unit *unit = cond->first;
    struct mutex *mutex = cond->mutex;
    if (unit != NULL)
        store_relaxed(&cond->first, unit->next);
    release(cond);
    if (unit != NULL && mutex_own_or_wait(mutex, unit))
        unit_wake(worker, unit);
    leave();
    return unit != NULL;
}

void thrum_cond_signal(thrum_cond_t *object) {
    wake_first(cond_of(object));
}

void thrum_cond_broadcast(thrum_cond_t *object) {
    while (wake_first(cond_of(object))) {
    }
}
