// SPDX-License-Identifier: Apache-2.0
/* The word that each synchronisation object begins with: its state and the lock of its waiters in one.
 *
 *   bit 0         the object's own: held, set, closed
 *   WORD_WAITERS  a list of waiters is not empty
 *   WORD_SPIN     a thread reads or changes the lists. No other thread writes the word, or touches what is "under
 *                 SPIN", until it is gone. Held for a few instructions (a batch of waiters, an element of a channel),
 *                 in a non-preemptible region.
 *   the rest      the object's own: kind, count
 *
 * Why one word: an operation that sets, posts or unlocks gives SPIN back and publishes the new state by one store,
 * and does not touch the object again. So a thread that sees the new state may destroy the object at once.
 *
 * To ThreadSanitizer, which does not see into this library, a thread that has had SPIN, or what a fast path has
 * instead of it, hands on through `word` all that it did before (annotate.h).
 *
 * The holder of SPIN may lose its CPU to another process: a thread that waits for it gives its own CPU away after a
 * while. */
#ifndef THRUM_SYNC_WORD_H
#define THRUM_SYNC_WORD_H

#include <stdint.h>

#include "base/atomic.h"
#include "base/inside.h"
#include "context/annotate.h"
#include "os/backoff.h"

enum { WORD_WAITERS = 2, WORD_SPIN = 4 };

/* Takes SPIN. What the word was before: without it. The caller is inside. */
INSIDE static inline uint32_t word_lock(uint32_t *word) {
    uint32_t seen = load_relaxed(word);
    for (unsigned tries = 0;;) {
        if (__builtin_expect(seen & WORD_SPIN, 0)) {
            backoff(tries++);
            seen = load_relaxed(word);
        } else if (cas_acquire(word, &seen, seen | WORD_SPIN)) { /* pairs with word_unlock: the lists */
            annotate_happens_after(word);
            return seen;
        }
    }
}

/* As word_lock, but does not wait. *seen: what the word was. */
INSIDE static inline bool word_try_lock(uint32_t *word, uint32_t *seen) {
    *seen = load_relaxed(word);
    if (*seen & WORD_SPIN || !cas_acquire(word, seen, *seen | WORD_SPIN)) /* pairs as in word_lock */
        return false;
    annotate_happens_after(word);
    return true;
}

/* Gives SPIN back: the word is `now` from here on. */
INSIDE static inline void word_unlock(uint32_t *word, uint32_t now) {
    annotate_happens_before(word);
    store_release(word, now); /* pairs with word_lock, word_try_lock and the objects' own loads and cas */
}

#endif
