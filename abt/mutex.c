// SPDX-License-Identifier: Apache-2.0
/* Mutexes. Unlocking frees the mutex and wakes the oldest waiter, which tries again: another may overtake it. A hand-over would be
 * fairer, but a thread that tries in a loop without yielding, as ABT_mutex_spinlock and programs do, would wait for ever for the new
 * owner, which is behind it in the same pool.
 *
 * word: 0, or MUTEX_IS_LOCKED, MUTEX_HAS_WAITERS or both. HAS_WAITERS changes under the lock of the list, and says that the list is
 * not empty; unlocking then takes the slow path. */
#include <sched.h>
#include <stdlib.h>

#include "direct.h"
#include "objects.h"

enum { SPINS = 100, SPINS_UNTIL_YIELD = 1000 };

static struct mutex *mutex_of(ABT_mutex handle) {
    return object_body(handle);
}

static uint32_t attributes_of_mutex(ABT_mutex handle) {
    return *(const uint32_t *)(const void *)handle;
}

/* The caller, as an owner. */
static const void *owner_here(void) {
    static __thread char external;
    const struct abt_thread *self = abt_self();
    return self != NULL ? (const void *)self : &external;
}

/* Of one that nothing else is said of: the caller inlines this. Else *word is what is. */
static inline bool try_first(struct mutex *mutex, uint32_t *word) {
    *word = 0;
    return cas_acquire(&mutex->word, word, MUTEX_IS_LOCKED); /* pairs with unlock_first and unlock_slow */
}

/* `word` is what it was before. */
static inline bool try_again(struct mutex *mutex, uint32_t word) {
    while (!(word & MUTEX_IS_LOCKED))
        if (cas_acquire(&mutex->word, &word, word | MUTEX_IS_LOCKED)) /* pairs as that of try_first */
            return true;
    return false;
}

static inline bool try(struct mutex *mutex) {
    uint32_t word;
    return try_first(mutex, &word) || try_again(mutex, word);
}

/* Under the lock of the list. True: the caller has the mutex. False: it is locked, and says that there are waiters. */
static bool try_or_mark_locked(struct mutex *mutex) {
    uint32_t word = load_relaxed(&mutex->word), next;
    do
        next = word & MUTEX_IS_LOCKED ? word | MUTEX_HAS_WAITERS : word | MUTEX_IS_LOCKED;
    while (!cas_acquire(&mutex->word, &word, next)); /* pairs with unlock_first and unlock_slow */
    return !(word & MUTEX_IS_LOCKED);
}

static __attribute__((noinline)) void lock_slow(struct mutex *mutex) {
    if (load_relaxed(&abt.stream_count) > 1)
        for (int i = 0; i < SPINS; i++) {
            arch_relax();
            if (!(load_relaxed(&mutex->word) & MUTEX_IS_LOCKED) && try(mutex))
                return;
        }
    for (;;) {
        abt_lock(&mutex->lock);
        if (try_or_mark_locked(mutex)) {
            abt_unlock(&mutex->lock);
            return;
        }
        abt_wait_in(&mutex->list, &mutex->lock);
    }
}

/* Returns whether one was waiting. */
static __attribute__((noinline)) bool unlock_slow(struct mutex *mutex) {
    abt_lock(&mutex->lock);
    struct abt_waiter *next = abt_waitlist_take(&mutex->list);
    /* Pairs with try_first, try_again and try_or_mark_locked. */
    store_release(&mutex->word, mutex->list.first != NULL ? MUTEX_HAS_WAITERS : 0U);
    abt_unlock_and_wake(&mutex->lock, next); /* which may be gone then */
    return next != NULL;
}

/* As try_first. */
static inline bool unlock_first(struct mutex *mutex, uint32_t *word) {
    *word = MUTEX_IS_LOCKED;
    return cas_acq_rel(&mutex->word, word, 0); /* pairs with try_first, try_again and try_or_mark_locked */
}

static void plain_lock(struct mutex *mutex) {
    if (!try(mutex))
        lock_slow(mutex);
}

static bool plain_unlock(struct mutex *mutex) {
    uint32_t word;
    return !unlock_first(mutex, &word) && word & MUTEX_HAS_WAITERS && unlock_slow(mutex);
}

/* True: the caller has had it already. */
static bool lock_again(struct mutex *mutex, const void *owner) {
    if (load_relaxed(&mutex->owner) != owner)
        return false;
    mutex->depth++;
    return true;
}

void abt_mutex_lock(ABT_mutex handle) {
    struct mutex *mutex = mutex_of(handle);
    if (__builtin_expect(attributes_of_mutex(handle) == 0, 1)) {
        plain_lock(mutex);
        return;
    }
    const void *owner = owner_here();
    if (lock_again(mutex, owner))
        return;
    plain_lock(mutex);
    store_relaxed(&mutex->owner, owner);
}

bool abt_mutex_unlock(ABT_mutex handle) {
    struct mutex *mutex = mutex_of(handle);
    if (__builtin_expect(attributes_of_mutex(handle) != 0, 0)) {
        if (mutex->depth > 0) {
            mutex->depth--;
            return false;
        }
        store_relaxed(&mutex->owner, NULL);
    }
    return plain_unlock(mutex);
}

ABT_EXPORT int ABT_mutex_create(ABT_mutex *newmutex) {
    void *memory = calloc(1, OBJECT_SIZE);
    *newmutex = ABT_MUTEX_NULL;
    ABT_CHECK(memory != NULL, ABT_ERR_MEM);
    *newmutex = memory;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_mutex_create_with_attr(ABT_mutex_attr attr, ABT_mutex *newmutex) {
    int error = ABT_mutex_create(newmutex);
    if (error == ABT_SUCCESS && !abt_is_null(attr))
        *(uint32_t *)(void *)*newmutex = *(const uint32_t *)(const void *)attr;
    return error;
}

ABT_EXPORT int ABT_mutex_free(ABT_mutex *mutex) {
    ABT_CHECK_HANDLE(*mutex, ABT_ERR_INV_MUTEX);
    object_drain(&mutex_of(*mutex)->lock);
    free(*mutex);
    *mutex = ABT_MUTEX_NULL;
    return ABT_SUCCESS;
}

static __attribute__((noinline)) int lock_again_or_wait(ABT_mutex handle, uint32_t word) {
    if (attributes_of_mutex(handle) != 0)
        abt_mutex_lock(handle);
    else if (!try_again(mutex_of(handle), word))
        lock_slow(mutex_of(handle));
    return ABT_SUCCESS;
}

/* What is below is all on the way of a free mutex, and calls nothing. */
ABT_EXPORT int ABT_mutex_lock(ABT_mutex mutex) {
    ABT_CHECK_HANDLE(mutex, ABT_ERR_INV_MUTEX);
    uint32_t word = 0;
    if (__builtin_expect(attributes_of_mutex(mutex) != 0 || !try_first(mutex_of(mutex), &word), 0))
        return lock_again_or_wait(mutex, word);
    return ABT_SUCCESS;
}

/* Priorities are hints, which waiters in order do without. */
ABT_EXPORT int ABT_mutex_lock_low(ABT_mutex mutex) {
    return ABT_mutex_lock(mutex);
}

ABT_EXPORT int ABT_mutex_lock_high(ABT_mutex mutex) {
    return ABT_mutex_lock(mutex);
}

ABT_EXPORT int ABT_mutex_trylock(ABT_mutex handle) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_MUTEX);
    struct mutex *mutex = mutex_of(handle);
    bool is_recursive = attributes_of_mutex(handle) != 0;
    if (is_recursive && lock_again(mutex, owner_here()))
        return ABT_SUCCESS;
    ABT_CHECK(try(mutex), ABT_ERR_MUTEX_LOCKED);
    if (is_recursive)
        store_relaxed(&mutex->owner, owner_here());
    return ABT_SUCCESS;
}

/* The holder may need this CPU. */
ABT_EXPORT int ABT_mutex_spinlock(ABT_mutex mutex) {
    ABT_CHECK_HANDLE(mutex, ABT_ERR_INV_MUTEX);
    for (uint32_t i = 1; ABT_mutex_trylock(mutex) != ABT_SUCCESS; i++) {
        arch_relax();
        if (i % SPINS_UNTIL_YIELD == 0)
            sched_yield();
    }
    return ABT_SUCCESS;
}

static __attribute__((noinline)) int unlock_again_or_wake(ABT_mutex handle, uint32_t word) {
    if (attributes_of_mutex(handle) != 0)
        abt_mutex_unlock(handle);
    else if (word & MUTEX_HAS_WAITERS)
        unlock_slow(mutex_of(handle));
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_mutex_unlock(ABT_mutex mutex) {
    ABT_CHECK_HANDLE(mutex, ABT_ERR_INV_MUTEX);
    uint32_t word = 0;
    if (__builtin_expect(attributes_of_mutex(mutex) != 0 || !unlock_first(mutex_of(mutex), &word), 0))
        return unlock_again_or_wake(mutex, word);
    return ABT_SUCCESS;
}

/* ... and lets a waiter run, if it is one of this stream's. */
ABT_EXPORT int ABT_mutex_unlock_se(ABT_mutex mutex) {
    ABT_CHECK_HANDLE(mutex, ABT_ERR_INV_MUTEX);
    if (abt_mutex_unlock(mutex))
        ABT_thread_yield();
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_mutex_unlock_de(ABT_mutex mutex) {
    return ABT_mutex_unlock(mutex);
}

ABT_EXPORT int ABT_mutex_equal(ABT_mutex mutex1, ABT_mutex mutex2, ABT_bool *result) {
    *result = mutex1 == mutex2;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_mutex_get_attr(ABT_mutex mutex, ABT_mutex_attr *attr) {
    ABT_CHECK_HANDLE(mutex, ABT_ERR_INV_MUTEX);
    int error = ABT_mutex_attr_create(attr);
    if (error == ABT_SUCCESS)
        *(uint32_t *)(void *)*attr = attributes_of_mutex(mutex);
    return error;
}

ABT_EXPORT int ABT_mutex_attr_create(ABT_mutex_attr *newattr) {
    uint32_t *attr = calloc(1, sizeof *attr);
    *newattr = ABT_MUTEX_ATTR_NULL;
    ABT_CHECK(attr != NULL, ABT_ERR_MEM);
    *newattr = (ABT_mutex_attr)(void *)attr;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_mutex_attr_free(ABT_mutex_attr *attr) {
    ABT_CHECK_HANDLE(*attr, ABT_ERR_INV_MUTEX_ATTR);
    free(*attr);
    *attr = ABT_MUTEX_ATTR_NULL;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_mutex_attr_set_recursive(ABT_mutex_attr attr, ABT_bool recursive) {
    ABT_CHECK_HANDLE(attr, ABT_ERR_INV_MUTEX_ATTR);
    *(uint32_t *)(void *)attr = recursive ? MUTEX_RECURSIVE : 0;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_mutex_attr_get_recursive(ABT_mutex_attr attr, ABT_bool *recursive) {
    ABT_CHECK_HANDLE(attr, ABT_ERR_INV_MUTEX_ATTR);
    *recursive = *(const uint32_t *)(const void *)attr != 0;
    return ABT_SUCCESS;
}
