// SPDX-License-Identifier: Apache-2.0
/* The readers-writer lock. Readers and writers take turns in phases (after Brandenburg and Anderson, "Reader-Writer
 * Synchronization for Shared-Memory Multiprocessor Real-Time Systems", ECRTS 2009):
 *
 *   - a writer that waits keeps new readers out: writers do not starve;
 *   - a writer that unlocks lets in all readers that wait, and only if there are none the next writer: a reader waits
 *     for one writer at most, besides those readers that were there before it.
 *
 * Invariant, outside SPIN: readers wait only while a writer holds it or waits; no thread waits while it is free.
 *
 * Each store that releases the lock is the last that the unlocker does to it. While an unlocking writer claims
 * readers in batches it still holds the lock. A writer that gives up and lets waiting readers in does so batch by
 * batch. */
#include "sync/rwlock.h"

#include <errno.h>

#include "base/misuse.h"
#include "sched/cancel.h"

static uint32_t with_waiters(const struct rwlock *lock, uint32_t word) {
    bool any = lock->readers.first != NULL || lock->writers.first != NULL;
    return any ? word | WORD_WAITERS : word & ~(uint32_t)WORD_WAITERS;
}

static void note_writer(struct rwlock *lock, struct thrum_unit *unit) {
    store_relaxed(&lock->writer, unit);
}

/* --- locking ------------------------------------------------------------------------------------------ */

static bool may_read(const struct rwlock *lock, uint32_t word) {
    return !(word & RWLOCK_WRITING) && lock->writers.first == NULL;
}

static bool may_write(const struct rwlock *lock, uint32_t word) {
    (void)lock;
    return !(word & RWLOCK_WRITING) && word < RWLOCK_READER;
}

/* SPIN is held; gives it back. False: the deadline came first, and the waiter may still be in the list. */
INSIDE static bool wait_in(struct worker *worker, struct rwlock *lock, struct waiters *list,
                           struct waiter *waiter, uint32_t word, uint64_t deadline) {
    deadline = cancel_point_of_lock(worker, deadline);
    waiter->contested = deadline != TIMER_NEVER;
    waiter_await(waiter->wait->unit, list == &lock->readers ? AWAITS_READ : AWAITS_WRITE, lock, deadline);
    waiters_add(list, waiter);
    word_unlock(&lock->word, word | WORD_WAITERS);
    return waiter_block(worker, waiter->wait, deadline);
}

INSIDE static void forget_reader(struct rwlock *lock, struct waiter *waiter) {
    uint32_t word;
    if (!waiter_return(waiter, &lock->word, &word))
        return;
    waiters_remove(&lock->readers, waiter);
    word_unlock(&lock->word, with_waiters(lock, word));
}

/* Readers may have waited for this writer alone: unless it was dismissed, by an unlocker that has seen to them. Between two
 * batches all may change. */
INSIDE static void forget_writer(struct rwlock *lock, struct waiter *waiter) {
    uint32_t word;
    if (!waiter_return(waiter, &lock->word, &word))
        return;
    waiters_remove(&lock->writers, waiter);
    for (bool more = true; more;) {
        struct waiters taken = {.first = NULL};
        if (may_read(lock, word))
            word += waiters_take_batch(&lock->readers, 0, &taken, &more) * RWLOCK_READER;
        else
            more = false;
        word_unlock(&lock->word, with_waiters(lock, word));
        waiters_wake(&taken, 0);
        if (more)
            word = word_lock(&lock->word);
    }
}

bool rwlock_enlist(struct rwlock *lock, struct waiter *waiter, bool writes) {
    uint32_t word = word_lock(&lock->word);
    bool free = writes ? may_write(lock, word) : may_read(lock, word);
    if (!free) {
        waiters_add(writes ? &lock->writers : &lock->readers, waiter);
        word |= WORD_WAITERS;
    }
    word_unlock(&lock->word, word);
    return !free;
}

void rwlock_forget(struct rwlock *lock, struct waiter *waiter, bool writes) {
    if (writes)
        forget_writer(lock, waiter);
    else
        forget_reader(lock, waiter);
}

static __attribute__((noinline)) int read_slow(struct rwlock *lock, uint64_t deadline) {
    struct worker *worker = enter();
    struct wait wait = {.unit = unit_self(worker)};
    struct waiter waiter = waiter_make(&wait, false);
    uint32_t word = word_lock(&lock->word);
    int error = 0;
    if (may_read(lock, word)) {
        word_unlock(&lock->word, word + RWLOCK_READER);
    } else if (!wait_in(worker, lock, &lock->readers, &waiter, word, deadline)) {
        forget_reader(lock, &waiter);
        error = ETIMEDOUT;
    }
    leave();
    return cancel_act_of_lock(error);
}

static __attribute__((noinline)) int write_slow(struct rwlock *lock, uint64_t deadline) {
    struct worker *worker = enter();
    struct wait wait = {.unit = unit_self(worker)};
    struct waiter waiter = waiter_make(&wait, false);
    if (MISUSE_IS_WATCHED && load_relaxed(&lock->writer) == wait.unit)
        misuse(EDEADLK, "thrum_rwlock_write_lock: the caller holds this lock for writing already");
    uint32_t word = word_lock(&lock->word);
    int error = 0;
    if (may_write(lock, word)) {
        note_writer(lock, wait.unit);
        word_unlock(&lock->word, word | RWLOCK_WRITING);
    } else if (!wait_in(worker, lock, &lock->writers, &waiter, word, deadline)) {
        forget_writer(lock, &waiter);
        error = ETIMEDOUT;
    }
    leave();
    return cancel_act_of_lock(error);
}

/* The fast paths give up where a thread holds SPIN. */
static int try_slow(struct rwlock *lock, bool (*may)(const struct rwlock *, uint32_t), uint32_t one) {
    struct thrum_unit *self = unit_self(enter());
    uint32_t word = word_lock(&lock->word);
    bool mine = may(lock, word);
    if (mine && one == RWLOCK_WRITING)
        note_writer(lock, self);
    word_unlock(&lock->word, mine ? word + one : word);
    leave();
    return mine ? 0 : EBUSY;
}

static bool read_fast(struct rwlock *lock) {
    uint32_t word = load_relaxed(&lock->word);
    while (!(word & (RWLOCK_WRITING | WORD_WAITERS | WORD_SPIN)))
        if (cas_acquire(&lock->word, &word,
                        word + RWLOCK_READER)) { /* pairs with unlock_fast and word_unlock */
            annotate_happens_after(&lock->word);
            return true;
        }
    return false;
}

static bool write_fast(struct rwlock *lock) {
    uint32_t word = 0;
    /* Pairs with unlock_fast and word_unlock. */
    bool mine = !MISUSE_IS_WATCHED && cas_acquire(&lock->word, &word, RWLOCK_WRITING);
    if (mine) {
        note_writer(lock, unit_to_note());
        annotate_happens_after(&lock->word);
    }
    return mine;
}

/* --- unlocking ---------------------------------------------------------------------------------------- */

/* SPIN is held, and only the caller holds the lock, which `word` still counts; returns the next value of the word.
 * Claims the next writer, or all readers that wait: in batches, since each is counted; SPIN is given back between
 * them. */
INSIDE static uint32_t admit_writer(struct rwlock *lock, uint32_t word, struct waiters *taken) {
    struct waiter *writer = waiters_take(&lock->writers);
    if (writer == NULL)
        return word;
    waiters_add(taken, writer);
    note_writer(lock, writer->wait->unit);
    return word | RWLOCK_WRITING;
}

INSIDE static uint32_t admit_readers(struct rwlock *lock, uint32_t word, struct waiters *taken) {
    uint32_t admitted = 0;
    for (bool more;;) {
        admitted += waiters_take_batch(&lock->readers, 0, taken, &more);
        if (!more)
            return word + admitted * RWLOCK_READER;
        word_unlock(&lock->word, word);
        leave();
        enter();
        word = word_lock(&lock->word);
    }
}

/* Readers first: they have waited for this writer. */
INSIDE static void unlock_writer(struct rwlock *lock, uint32_t word) {
    struct waiters taken = {.first = NULL};
    note_writer(lock, NULL);
    word = admit_readers(lock, word, &taken) & ~(uint32_t)RWLOCK_WRITING;
    if (taken.first == NULL)
        word = admit_writer(lock, word, &taken);
    word_unlock(&lock->word, with_waiters(lock, word));
    waiters_wake(&taken, 0);
}

/* A writer first: those readers that wait came after it. There need be no writer: its deadline may have come. */
INSIDE static void unlock_last_reader(struct rwlock *lock, uint32_t word) {
    struct waiters taken = {.first = NULL};
    word = admit_writer(lock, word, &taken);
    if (taken.first == NULL)
        word = admit_readers(lock, word, &taken);
    word_unlock(&lock->word, with_waiters(lock, word - RWLOCK_READER));
    waiters_wake(&taken, 0);
}

INSIDE static int unlock_inside(struct worker *worker, struct rwlock *lock) {
    uint32_t word = word_lock(&lock->word);
    if (word & RWLOCK_WRITING) {
        if (MISUSE_IS_WATCHED && lock->writer != unit_identity(worker))
            misuse(EPERM, "thrum_rwlock_unlock: another thread holds this lock for writing");
        unlock_writer(lock, word);
    } else if (word < RWLOCK_READER) {
        word_unlock(&lock->word, word);
        return misuse(EPERM, "thrum_rwlock_unlock: this lock is not locked");
    } else if (word < 2 * RWLOCK_READER) {
        unlock_last_reader(lock, word);
    } else {
        word_unlock(&lock->word, word - RWLOCK_READER);
    }
    return 0;
}

static bool unlock_fast(struct rwlock *lock) {
    uint32_t word = load_relaxed(&lock->word);
    annotate_happens_before(&lock->word);
    while (!(word & WORD_SPIN)) {
        bool writer = !MISUSE_IS_WATCHED && word == RWLOCK_WRITING;
        bool reader = word >= 2 * RWLOCK_READER || word == RWLOCK_READER;
        if (!writer && !reader)
            return false;
        /* Pairs with read_fast, write_fast and word_lock. */
        if (cas_acq_rel(&lock->word, &word, writer ? 0 : word - RWLOCK_READER))
            return true;
    }
    return false;
}

/* --- thrum_rwlock_t ----------------------------------------------------------------------------------- */

void thrum_rwlock_init(thrum_rwlock_t *lock) {
    if (is_null(lock))
        misuse_null(__func__);
    *rwlock_of(lock) = (struct rwlock){.word = 0};
}

void thrum_rwlock_read_lock(thrum_rwlock_t *lock) {
    if (is_null(lock))
        misuse_null(__func__);
    if (!read_fast(rwlock_of(lock)))
        read_slow(rwlock_of(lock), TIMER_NEVER);
}

int thrum_rwlock_read_lock_until(thrum_rwlock_t *lock, uint64_t deadline) {
    if (is_null(lock))
        return EINVAL;
    return read_fast(rwlock_of(lock)) ? 0 : read_slow(rwlock_of(lock), deadline);
}

void thrum_rwlock_write_lock(thrum_rwlock_t *lock) {
    if (is_null(lock))
        misuse_null(__func__);
    if (!write_fast(rwlock_of(lock)))
        write_slow(rwlock_of(lock), TIMER_NEVER);
}

int thrum_rwlock_write_lock_until(thrum_rwlock_t *lock, uint64_t deadline) {
    if (is_null(lock))
        return EINVAL;
    return write_fast(rwlock_of(lock)) ? 0 : write_slow(rwlock_of(lock), deadline);
}

int thrum_rwlock_try_read_lock(thrum_rwlock_t *lock) {
    if (is_null(lock))
        return EINVAL;
    return read_fast(rwlock_of(lock)) ? 0 : try_slow(rwlock_of(lock), may_read, RWLOCK_READER);
}

int thrum_rwlock_try_write_lock(thrum_rwlock_t *lock) {
    if (is_null(lock))
        return EINVAL;
    return write_fast(rwlock_of(lock)) ? 0 : try_slow(rwlock_of(lock), may_write, RWLOCK_WRITING);
}

int thrum_rwlock_unlock(thrum_rwlock_t *object) {
    if (is_null(object))
        return EINVAL;
    struct rwlock *lock = rwlock_of(object);
    if (unlock_fast(lock))
        return 0;
    int error = unlock_inside(enter(), lock);
    leave();
    return error;
}

int thrum_rwlock_destroy(thrum_rwlock_t *lock) {
    if (is_null(lock))
        return EINVAL;
    /* Pairs with unlock_fast and word_unlock. */
    if (load_acquire(&rwlock_of(lock)->word) & ~(uint32_t)WORD_SPIN)
        return misuse(EBUSY, "thrum_rwlock_destroy: this lock is locked or has waiters");
    return 0;
}
