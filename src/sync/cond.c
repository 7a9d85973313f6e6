// SPDX-License-Identifier: Apache-2.0
/* The condition variable. A waiter that is signalled is not woken but moved to its mutex (wait morphing), unless that is
 * free. From there on it has no deadline any more: it was signalled in time, and waits for the mutex as long as it
 * takes, as POSIX has it. */
#include "sync/cond.h"

#include <errno.h>

#include "arch_return.h"
#include "sched/cancel.h"

static struct cond *cond_of(thrum_cond_t *cond) {
    return (struct cond *)(void *)cond;
}

static bool is_its_mutex(const struct cond *cond, const struct mutex *mutex) {
    return cond->queue.waiters.first == NULL || cond->mutex == mutex;
}

void cond_enlist(struct worker *worker, struct cond *cond, struct mutex *mutex, struct waiter *waiter) {
    if (MISUSE_IS_WATCHED && !mutex_is_callers(worker, mutex))
        misuse(EPERM, "thrum_cond_wait: the caller does not own this mutex");
    uint32_t word = word_lock(&cond->queue.word);
    if (MISUSE_IS_WATCHED && !is_its_mutex(cond, mutex))
        misuse(EINVAL, "thrum_cond_wait: other threads wait for this condition with another mutex");
    cond->mutex = mutex;
    waiters_add(&cond->queue.waiters, waiter);
    word_unlock(&cond->queue.word, word | WORD_WAITERS);
}

INSIDE static int wait_inside(struct worker *worker, struct cond *cond, struct mutex *mutex,
                              uint64_t deadline) {
    struct wait wait = {.unit = unit_self(worker)};
    deadline = cancel_point(worker, deadline);
    struct waiter waiter = waiter_make(&wait, deadline != TIMER_NEVER);
    waiter_await(wait.unit, AWAITS_COND, cond, deadline);
    cond_enlist(worker, cond, mutex, &waiter);
    mutex_unlock_inside(worker, mutex);
    if (waiter_block(worker, &wait, deadline))
        return 0;
    queue_leave(&cond->queue, &waiter);
    mutex_lock_inside(worker_here(), mutex, TIMER_NEVER, false);
    return ETIMEDOUT;
}

static int cond_wait(struct cond *cond, struct mutex *mutex, uint64_t deadline) {
    uint32_t depth = mutex->depth; /* of a recursive one: it is let go as a whole */
    mutex->depth = 0;
    int error = wait_inside(enter(), cond, mutex, deadline);
    leave();
    mutex->depth = depth;
    return cancel_act(error); /* with the mutex, as POSIX has it */
}

void thrum_cond_init(thrum_cond_t *cond) {
    if (is_null(cond))
        misuse_null(__func__);
    *cond_of(cond) = (struct cond){.mutex = NULL};
}

static ARCH_CALLED_BY_NAME uint64_t cond_wait_from(thrum_cond_t *cond, thrum_mutex_t *mutex,
                                                   const void *place) {
    if (is_null(cond) || is_null(mutex))
        misuse_null("thrum_cond_wait");
    unit_leaves_from(place);
    cond_wait(cond_of(cond), mutex_of(mutex), TIMER_NEVER);
    return arch_return(0, !unit_was_left_from(place));
}
ARCH_RETURN_VOID_BY_PLACE(thrum_cond_wait, (thrum_cond_t * cond, thrum_mutex_t *mutex), cond_wait_from, cond,
                          mutex)

int thrum_cond_wait_until(thrum_cond_t *cond, thrum_mutex_t *mutex, uint64_t deadline) {
    if (is_null(cond) || is_null(mutex))
        return EINVAL;
    return cond_wait(cond_of(cond), mutex_of(mutex), deadline);
}

/* A thread that signals after having changed the condition under the mutex sees every waiter for it: the waiter put
 * itself on the list before it released the mutex. So if the word says that no thread waits, there is none that this
 * must wake. */
static bool has_no_waiters(const struct cond *cond) {
    return load_relaxed(&cond->queue.word) == 0;
}

void thrum_cond_signal(thrum_cond_t *object) {
    if (is_null(object))
        misuse_null(__func__);
    struct cond *cond = cond_of(object);
    if (has_no_waiters(cond))
        return;
    struct worker *worker = enter();
    uint32_t word = word_lock(&cond->queue.word);
    struct waiter *first = waiters_take(&cond->queue.waiters);
    struct mutex *mutex = cond->mutex;
    word_unlock(&cond->queue.word, queue_word(&cond->queue, word));
    if (first != NULL && mutex_adopt_one(mutex, first))
        waiter_wake(worker, first);
    leave();
}

void thrum_cond_broadcast(thrum_cond_t *object) {
    if (is_null(object))
        misuse_null(__func__);
    struct cond *cond = cond_of(object);
    if (has_no_waiters(cond))
        return;
    enter();
    struct waiters taken = {.first = NULL};
    uint32_t word =
        waiters_take_all(&cond->queue.waiters, &cond->queue.word, word_lock(&cond->queue.word), 0, &taken);
    struct mutex *mutex = cond->mutex;
    word_unlock(&cond->queue.word, queue_word(&cond->queue, word));
    struct waiter *next_owner = taken.first != NULL ? mutex_adopt(mutex, &taken) : NULL;
    if (next_owner != NULL)
        waiter_wake(worker_here(), next_owner);
    leave();
}

/* After a broadcast no thread is listed, and waiters whose deadlines came before have been dismissed. */
int thrum_cond_destroy(thrum_cond_t *cond) {
    if (is_null(cond))
        return EINVAL;
    if (load_acquire(&cond_of(cond)->queue.word) != 0) /* pairs with word_unlock */
        return misuse(EBUSY, "thrum_cond_destroy: a thread still waits for this condition");
    return 0;
}
