// SPDX-License-Identifier: Apache-2.0
/* See mutex.h. */
#include "sync/mutex.h"

#include <errno.h>

#include "arch_return.h"
#include "sched/cancel.h"

/* --- under SPIN --------------------------------------------------------------------------------------- */

static void own(struct mutex *mutex, struct thrum_unit *unit) {
    store_relaxed(&mutex->owner, unit);
}

static void enlist(struct mutex *mutex, uint32_t word, struct waiter *waiter) {
    struct waiters *list = &mutex->queue.waiters;
    struct waiter *before = NULL; /* the first that has a lower priority */
    if (__builtin_expect(word & MUTEX_PRIORITY, 0)) {
        uint8_t priority = waiter->wait->unit->priority;
        for (struct waiter *at = list->last; at != NULL && at->wait->unit->priority < priority; at = at->prev)
            before = at;
    }
    waiters_add_before(list, waiter, before);
}

/* Those of a condition variable, which are claimed, no longer wait for that. */
static void awaits_this(const struct mutex *mutex, const struct waiter *waiter) {
    store_relaxed(&waiter->wait->unit->awaits, awaits_make(AWAITS_MUTEX, mutex));
}

struct waiter *mutex_adopt(struct mutex *mutex, struct waiters *chain) {
    for (const struct waiter *waiter = chain->first; waiter != NULL; waiter = waiter->next)
        awaits_this(mutex, waiter);
    uint32_t word = word_lock(&mutex->word);
    struct waiter *next_owner = NULL;
    if (__builtin_expect(word & MUTEX_PRIORITY, 0)) {
        for (struct waiter *waiter; (waiter = waiters_take(chain)) != NULL;)
            enlist(mutex, word, waiter);
    } else {
        waiters_splice(&mutex->queue.waiters, chain);
    }
    if (!(word & MUTEX_LOCKED)) { /* the list has only the chain */
        next_owner = waiters_take(&mutex->queue.waiters);
        own(mutex, next_owner->wait->unit);
        word |= MUTEX_LOCKED;
    }
    word_unlock(&mutex->word, queue_word(&mutex->queue, word));
    return next_owner;
}

bool mutex_adopt_one(struct mutex *mutex, struct waiter *waiter) {
    uint32_t word = word_lock(&mutex->word);
    bool free = !(word & MUTEX_LOCKED);
    if (free) {
        own(mutex, waiter->wait->unit);
        word_unlock(&mutex->word, word | MUTEX_LOCKED);
    } else {
        awaits_this(mutex, waiter);
        enlist(mutex, word, waiter);
        word_unlock(&mutex->word, word | WORD_WAITERS);
    }
    return free;
}

void mutex_give(struct mutex *mutex, struct thrum_unit *unit) {
    own(mutex, unit);
}

/* --- locking ------------------------------------------------------------------------------------------ */

/* SPIN is held, the mutex is another's; gives SPIN back. */
INSIDE static int wait_for_it(struct worker *worker, struct mutex *mutex, uint32_t word, uint64_t deadline) {
    struct wait wait = {.unit = unit_self(worker)};
    struct waiter waiter = waiter_make(&wait, deadline != TIMER_NEVER);
    waiter_await(wait.unit, AWAITS_MUTEX, mutex, deadline);
    enlist(mutex, word, &waiter);
    word_unlock(&mutex->word, word | WORD_WAITERS);
    if (waiter_block(worker, &wait, deadline))
        return 0;
    queue_leave(&mutex->queue, &waiter);
    return ETIMEDOUT;
}

bool mutex_enlist(struct mutex *mutex, struct waiter *waiter) {
    uint32_t word = word_lock(&mutex->word);
    if (word & MUTEX_LOCKED) {
        enlist(mutex, word, waiter);
        word |= WORD_WAITERS;
    }
    word_unlock(&mutex->word, word);
    return word & MUTEX_LOCKED;
}

/* It has an owner, which is the caller. */
static int lock_again(struct mutex *mutex, uint32_t word) {
    if (!(word & MUTEX_RECURSIVE))
        return misuse(EDEADLK,
                      "thrum_mutex_lock: the caller owns this mutex already, and it is not recursive");
    mutex->depth++;
    return 0;
}

int mutex_lock_inside(struct worker *worker, struct mutex *mutex, uint64_t deadline, bool is_point) {
    struct thrum_unit *self = unit_identity(worker);
    uint32_t word = load_relaxed(&mutex->word);
    if (owner_is_kept(word) && load_relaxed(&mutex->owner) == self)
        return lock_again(mutex, word);
    word = word_lock(&mutex->word);
    if (word & MUTEX_LOCKED)
        return wait_for_it(worker, mutex, word, is_point ? cancel_point_of_lock(worker, deadline) : deadline);
    own(mutex, self);
    word_unlock(&mutex->word, word | MUTEX_LOCKED);
    return 0;
}

static __attribute__((noinline)) int lock_slow(struct mutex *mutex, uint64_t deadline) {
    int error = mutex_lock_inside(enter(), mutex, deadline, true);
    leave();
    return cancel_act_of_lock(error);
}

/* Plain ones only. */
static inline bool lock_fast(struct mutex *mutex) {
    uint32_t word = 0;
    if (MISUSE_IS_WATCHED || __builtin_expect(load_relaxed(&mutex->word) != 0, 0))
        return false; /* a load costs less than a cas that fails */
    if (!__builtin_expect(cas_acquire(&mutex->word, &word, MUTEX_LOCKED),
                          1)) /* pairs with thrum_mutex_unlock, word_unlock */
        return false;
    own(mutex, unit_to_note());
    annotate_happens_after(&mutex->word);
    return true;
}

static ARCH_CALLED_BY_NAME uint64_t lock_from(struct mutex *mutex, const void *unused, const void *place) {
    (void)unused;
    unit_leaves_from(place);
    lock_slow(mutex, TIMER_NEVER);
    return arch_return(0, !unit_was_left_from(place));
}
/* A backtrace has it in the place of thrum_mutex_lock, which jumps there if it is optimised. */
ARCH_RETURN_BY_PLACE(static int, thrum_mutex_lock_slowly, (struct mutex * mutex), lock_from, mutex, NULL)

void thrum_mutex_lock(thrum_mutex_t *mutex) {
    if (is_null(mutex))
        misuse_null(__func__);
    if (!lock_fast(mutex_of(mutex)))
        thrum_mutex_lock_slowly(mutex_of(mutex));
}

int thrum_mutex_lock_until(thrum_mutex_t *mutex, uint64_t deadline) {
    if (is_null(mutex))
        return EINVAL;
    return lock_fast(mutex_of(mutex)) ? 0 : lock_slow(mutex_of(mutex), deadline);
}

int thrum_mutex_try_lock(thrum_mutex_t *object) {
    if (is_null(object))
        return EINVAL;
    struct mutex *mutex = mutex_of(object);
    if (lock_fast(mutex))
        return 0;
    uint32_t word = load_relaxed(&mutex->word);
    if (word & MUTEX_LOCKED && !owner_is_kept(word))
        return EBUSY;
    struct thrum_unit *self = unit_identity(enter());
    int error = 0;
    if (load_relaxed(&mutex->owner) == self && word & MUTEX_RECURSIVE) {
        mutex->depth++;
    } else {
        word = word_lock(&mutex->word);
        if (word & MUTEX_LOCKED)
            error = EBUSY;
        else
            own(mutex, self);
        word_unlock(&mutex->word, word | MUTEX_LOCKED);
    }
    leave();
    return error;
}

/* --- unlocking ---------------------------------------------------------------------------------------- */

/* To the first of the list, or to no thread. */
INSIDE static int hand_over(struct worker *worker, struct mutex *mutex) {
    uint32_t word = word_lock(&mutex->word);
    struct waiter *next_owner = waiters_take(&mutex->queue.waiters);
    own(mutex, next_owner != NULL ? next_owner->wait->unit : NULL);
    word = queue_word(&mutex->queue, word);
    word_unlock(&mutex->word, next_owner != NULL ? word : word & ~(uint32_t)MUTEX_LOCKED);
    if (next_owner != NULL)
        waiter_wake(worker, next_owner);
    return 0;
}

bool mutex_is_callers(struct worker *worker, const struct mutex *mutex) {
    uint32_t word = load_relaxed(&mutex->word);
    return word & MUTEX_LOCKED &&
           (!owner_is_kept(word) || load_relaxed(&mutex->owner) == unit_identity(worker));
}

int mutex_unlock_inside(struct worker *worker, struct mutex *mutex) {
    uint32_t word = load_relaxed(&mutex->word);
    if (!(word & MUTEX_LOCKED))
        return misuse(EPERM, "thrum_mutex_unlock: this mutex is not locked");
    if (owner_is_kept(word)) {
        if (load_relaxed(&mutex->owner) != unit_identity(worker))
            return misuse(EPERM, "thrum_mutex_unlock: another thread owns this mutex (a coroutine must not "
                                 "hold it across co_await)");
        if (mutex->depth > 0) {
            mutex->depth--;
            return 0;
        }
    }
    return hand_over(worker, mutex);
}

static __attribute__((noinline)) int unlock_slow(struct mutex *mutex) {
    int error = mutex_unlock_inside(enter(), mutex);
    leave();
    return error;
}

int thrum_mutex_unlock(thrum_mutex_t *object) {
    if (is_null(object))
        return EINVAL;
    struct mutex *mutex = mutex_of(object);
    uint32_t word = load_relaxed(&mutex->word);
    /* Pairs with lock_fast and word_lock. Where accesses are annotated the slow path does that. */
    if (!MISUSE_IS_WATCHED && !annotate_is_on() && __builtin_expect(word == MUTEX_LOCKED, 1) &&
        __builtin_expect(cas_acq_rel(&mutex->word, &word, 0), 1))
        return 0;
    return unlock_slow(mutex);
}

/* --- the rest ----------------------------------------------------------------------------------------- */

int thrum_mutex_init(thrum_mutex_t *mutex, unsigned kind) {
    if (is_null(mutex))
        return EINVAL;
    if (kind & ~(unsigned)(THRUM_MUTEX_RECURSIVE | THRUM_MUTEX_PRIORITY))
        return EINVAL;
    *mutex_of(mutex) = (struct mutex){.queue.word = kind};
    return 0;
}

int thrum_mutex_destroy(thrum_mutex_t *mutex) {
    if (is_null(mutex))
        return EINVAL;
    /* Pairs with an unlock. */
    if (load_acquire(&mutex_of(mutex)->word) & (MUTEX_LOCKED | WORD_WAITERS))
        return misuse(EBUSY, "thrum_mutex_destroy: this mutex is locked or has waiters");
    return 0;
}
