// SPDX-License-Identifier: Apache-2.0
/* See sem.h. */
#include "sync/sem.h"
#include "arch_return.h"
#include "sched/cancel.h"

#include <errno.h>

bool sem_take(struct sem *sem) {
    uint32_t word = load_relaxed(&sem->queue.word);
    for (unsigned tries = 0; word >= SEM_ONE;) {
        if (word & WORD_SPIN) {
            backoff(tries++);
            word = load_relaxed(&sem->queue.word);
        } else if (cas_acquire(&sem->queue.word, &word, word - SEM_ONE)) { /* pairs with post */
            annotate_happens_after(&sem->queue.word);
            return true;
        }
    }
    return false;
}

static __attribute__((noinline)) int wait_slow(struct sem *sem, uint64_t deadline) {
    struct worker *worker = enter();
    uint32_t word = word_lock(&sem->queue.word);
    int error = 0;
    if (word >= SEM_ONE)
        word_unlock(&sem->queue.word, word - SEM_ONE);
    else if (!queue_wait(worker, &sem->queue, AWAITS_SEM, word, cancel_point(worker, deadline)))
        error = ETIMEDOUT;
    leave();
    return cancel_act(error);
}

/* SPIN is held, and held again when this returns. Gives one permit to each waiter; what is left is in *permits.
 * Returns the word. */
INSIDE static uint32_t give(struct sem *sem, uint32_t word, uint32_t *permits, struct waiters *taken) {
    struct waiter *waiter;
    for (unsigned given = 0; *permits > 0 && (waiter = waiters_take(&sem->queue.waiters)) != NULL;
         --*permits) {
        waiters_add(taken, waiter);
        if (++given % WAITERS_BATCH == 0) {
            word_unlock(&sem->queue.word, queue_word(&sem->queue, word));
            leave();
            enter();
            word = word_lock(&sem->queue.word);
        }
    }
    return queue_word(&sem->queue, word);
}

static __attribute__((noinline)) int post_slow(struct sem *sem, uint32_t permits) {
    struct waiters taken = {.first = NULL};
    enter();
    uint32_t word = give(sem, word_lock(&sem->queue.word), &permits, &taken);
    bool fit = permits <= THRUM_SEM_MAX - (word >> SEM_SHIFT);
    word_unlock(&sem->queue.word, fit ? word + permits * SEM_ONE : word);
    waiters_wake(&taken, 0);
    leave();
    return fit ? 0 : EOVERFLOW;
}

/* --- thrum_sem_t -------------------------------------------------------------------------------------- */

int thrum_sem_init(thrum_sem_t *sem, unsigned permits) {
    if (is_null(sem))
        return EINVAL;
    if (permits > THRUM_SEM_MAX)
        return EINVAL;
    *sem_of(sem) = (struct sem){.queue.word = permits * SEM_ONE};
    return 0;
}

int thrum_sem_try_wait(thrum_sem_t *sem) {
    if (is_null(sem))
        return EINVAL;
    return sem_take(sem_of(sem)) ? 0 : EBUSY;
}

static ARCH_CALLED_BY_NAME uint64_t wait_from(thrum_sem_t *sem, const void *unused, const void *place) {
    (void)unused;
    if (is_null(sem))
        misuse_null("thrum_sem_wait");
    if (sem_take(sem_of(sem)))
        return arch_return(0, false);
    unit_leaves_from(place);
    wait_slow(sem_of(sem), TIMER_NEVER);
    return arch_return(0, !unit_was_left_from(place));
}
ARCH_RETURN_VOID_BY_PLACE(thrum_sem_wait, (thrum_sem_t * sem), wait_from, sem, NULL)

int thrum_sem_wait_until(thrum_sem_t *sem, uint64_t deadline) {
    if (is_null(sem))
        return EINVAL;
    return sem_take(sem_of(sem)) ? 0 : wait_slow(sem_of(sem), deadline);
}

int thrum_sem_post_many(thrum_sem_t *object, unsigned permits) {
    if (is_null(object))
        return EINVAL;
    struct sem *sem = sem_of(object);
    uint32_t word = load_relaxed(&sem->queue.word);
    annotate_happens_before(&sem->queue.word);
    while (!(word & (WORD_SPIN | WORD_WAITERS))) {
        if (permits > THRUM_SEM_MAX - (word >> SEM_SHIFT))
            return EOVERFLOW;
        /* Pairs with sem_take and word_lock. */
        if (cas_acq_rel(&sem->queue.word, &word, word + permits * SEM_ONE))
            return 0;
    }
    return permits > THRUM_SEM_MAX ? EOVERFLOW : post_slow(sem, permits);
}

int thrum_sem_post(thrum_sem_t *sem) {
    return thrum_sem_post_many(sem, 1);
}

unsigned thrum_sem_count(const thrum_sem_t *sem) {
    if (is_null(sem))
        return 0;
    return load_relaxed(&((const struct sem *)(const void *)sem)->queue.word) >> SEM_SHIFT;
}

int thrum_sem_destroy(thrum_sem_t *sem) {
    if (is_null(sem))
        return EINVAL;
    if (load_acquire(&sem_of(sem)->queue.word) & WORD_WAITERS) /* pairs with word_unlock */
        return misuse(EBUSY, "thrum_sem_destroy: a thread still waits for this semaphore");
    return 0;
}
