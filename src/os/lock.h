// SPDX-License-Identifier: Apache-2.0
/* A small futex lock for the library's own lists. Not recursive, not fair, not a cancellation point; held for a few
 * instructions only, never while user code runs.
 *
 * States of the word: 0 free; 1 held, no thread sleeps; 2 held, a thread may sleep (unlock must wake). Linearization:
 * lock at the successful cas/exchange (acquire), unlock at the exchange (release). Preemption of the holder delays
 * others but cannot lose a wake-up: a sleeper always leaves 2 behind. In a fork's child the holder may be gone:
 * lock_reset() there. */
#ifndef THRUM_OS_LOCK_H
#define THRUM_OS_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "os/futex.h"
#include "os/own_wait.h"

struct lock {
    uint32_t word;
};

/* For an assertion. Only libthrum has it (sched/may_lock.c): its threads take turns on a kernel thread, which would
 * sleep here for good if the lock holder needed it to run. */
bool lock_may_be_taken(void) __attribute__((weak, visibility("hidden")));

static inline void lock_acquire(struct lock *lock) {
    uint32_t seen = 0;
    thrum_assert(!lock_may_be_taken || lock_may_be_taken());
    if (cas_acquire(&lock->word, &seen, 1)) /* pairs with lock_release */
        return;
    own_wait_begin();
    while (exchange_acquire(&lock->word, 2) != 0) /* pairs with lock_release */
        futex_wait(&lock->word, 2);
    own_wait_end();
}

static inline void lock_release(struct lock *lock) {
    if (exchange_release(&lock->word, 0) == 2) /* pairs with lock_acquire */
        futex_wake(&lock->word, 1);
}

static inline void lock_reset(struct lock *lock) {
    store_relaxed(&lock->word, 0);
}

#endif
