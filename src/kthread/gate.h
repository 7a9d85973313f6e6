// SPDX-License-Identifier: Apache-2.0
/* The gate between a logical thread and the threads that reach it by its handle: pthread_kill, pthread_cancel,
 * pthread_setname_np and the like. After the logical thread has ended they must not reach the kernel thread, which is
 * idle or has another job already.
 *
 * Representation: one word, count of visitors inside plus the bits below.
 *   gate_enter   any thread: cas count -> count + 1 unless closed (linearization: the cas).
 *   gate_leave   the visitor: count - 1; wakes the thread if it is closing and this was the last.
 *   gate_close   the thread itself, at its job's end: sets the bit, waits until no visitor is inside. What a visitor
 *                did before it left (release) happens before the thread continues (acquire): a signal that it sent
 *                is queued, a cancellation flag that it set is seen.
 *   GATE_STARTING  stored by the creator, which alone owns the descriptor, and published with the job. A visitor that
 *                comes now waits until the thread has opened the gate: before that the thread discards what was
 *                sent to it while it was idle, and would discard what is meant for the new logical thread.
 *   gate_open    the thread itself: exchange (release), wakes the waiting visitors.
 *
 * A visitor blocks all its signals while inside, libc's too: if a handler that never returns interrupted it, or it
 * were cancelled, the thread could never end. A thread never visits itself, or it would wait for itself. Checked by
 * tests/model/gate.pml. */
#ifndef THRUM_KTHREAD_GATE_H
#define THRUM_KTHREAD_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "os/futex.h"
#include "os/signals.h"

#define GATE_OPEN     UINT32_C(0)
#define GATE_CLOSED   UINT32_C(0x80000000)
#define GATE_STARTING UINT32_C(0x40000000)
#define GATE_CALLERS  UINT32_C(0x20000000) /* with STARTING: a visitor sleeps until it is open */

struct gate_visit {
    uint32_t *gate;
    sigbits mask; /* the visitor's, put back when it leaves */
};

static inline bool gate_enter(uint32_t *gate) {
    uint32_t seen = load_relaxed(gate);
    while (!(seen & GATE_CLOSED)) {
        if (seen & GATE_STARTING) {
            /* Relaxed: it enters below, by a cas that acquires. */
            if (cas_relaxed(gate, &seen, GATE_STARTING | GATE_CALLERS))
                futex_wait(gate, GATE_STARTING | GATE_CALLERS);
            seen = load_relaxed(gate);
        } else if (cas_acquire(gate, &seen, seen + 1)) { /* pairs with gate_open */
            return true;
        }
    }
    return false;
}

/* Without waiting: false for a thread that is only starting, too. */
static inline bool gate_enter_now(uint32_t *gate) {
    uint32_t seen = load_relaxed(gate);
    /* Pairs with gate_open. */
    while (!(seen & (GATE_CLOSED | GATE_STARTING)))
        if (cas_acquire(gate, &seen, seen + 1))
            return true;
    return false;
}

static inline void gate_open(uint32_t *gate) {
    if (exchange_release(gate, GATE_OPEN) & GATE_CALLERS) /* pairs with gate_enter */
        futex_wake(gate, INT32_MAX);
}

static inline void gate_leave(uint32_t *gate) {
    if (fetch_sub_release(gate, 1) == (GATE_CLOSED | 1)) /* pairs with gate_close */
        futex_wake(gate, 1);
}

/* The two with the signals blocked meanwhile. */
static inline bool gate_visit_begin(struct gate_visit *visit, uint32_t *gate) {
    visit->gate = gate;
    visit->mask = signals_mask_set(SIGBITS_ALL);
    if (gate_enter(gate))
        return true;
    signals_mask_set(visit->mask);
    return false;
}

static inline void gate_visit_end(struct gate_visit *visit) {
    gate_leave(visit->gate);
    signals_mask_set(visit->mask);
}

static inline void gate_close(uint32_t *gate) {
    /* This and the next pair with gate_leave. */
    uint32_t seen = fetch_or_acquire(gate, GATE_CLOSED) | GATE_CLOSED;
    while (seen != GATE_CLOSED) {
        futex_wait(gate, seen);
        seen = load_acquire(gate);
    }
}

#endif
