// SPDX-License-Identifier: Apache-2.0
/* Process-private futexes. Callers loop: a wait may return for any reason. */
#ifndef THRUM_OS_FUTEX_H
#define THRUM_OS_FUTEX_H

#include <linux/futex.h>
#include <stdint.h>
#include <time.h>

#include "os/syscall.h"

/* Sleeps while *word == value. Returns 0 or -errno (-EAGAIN, -EINTR, ...). */
static inline __attribute__((always_inline)) long futex_wait(const uint32_t *word, uint32_t value) {
    return sys(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, 0);
}

/* Likewise until an absolute deadline on CLOCK_MONOTONIC or CLOCK_REALTIME; NULL waits for ever.
 * -ETIMEDOUT when it has passed, -EINVAL for a malformed one. */
static inline __attribute__((always_inline)) long
futex_wait_until(const uint32_t *word, uint32_t value, clockid_t clock, const struct timespec *deadline) {
    long op = FUTEX_WAIT_BITSET_PRIVATE | (clock == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0);
    return sys(SYS_futex, word, op, value, deadline, 0, FUTEX_BITSET_MATCH_ANY);
}

static inline void futex_wake(const uint32_t *word, int count) {
    sys(SYS_futex, word, FUTEX_WAKE_PRIVATE, count);
}

#endif
