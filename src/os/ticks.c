// SPDX-License-Identifier: Apache-2.0
/* See ticks.h. */
#include "os/ticks.h"

#include <stdbool.h>

#include "base/atomic.h"
#include "os/clock.h"

enum { ENOUGH_NS = 1000 * 1000 };

static uint64_t rate;                  /* 0 until known; then never changes */
static uint64_t first_ticks, first_ns; /* first_ns is written last, by whoever got `begun` */
static bool begun;

static void begin(void) {
    if (__atomic_exchange_n(&begun, true, __ATOMIC_RELAXED))
        return;
    store_relaxed(&first_ticks, arch_ticks());
    store_release(&first_ns, clock_monotonic_ns());
}

static uint64_t measure(void) {
    uint64_t then = load_acquire(&first_ns);
    if (then == 0) {
        begin();
        return 0;
    }
    uint64_t ns = clock_monotonic_ns() - then;
    if (ns < ENOUGH_NS)
        return 0;
    uint64_t ticks = arch_ticks() - load_relaxed(&first_ticks);
    uint64_t found = ticks / (ns / 1000);
    store_relaxed(&rate, found != 0 ? found : 1);
    return load_relaxed(&rate);
}

uint64_t ticks_per_us(void) {
    uint64_t known = load_relaxed(&rate);
    return known != 0 ? known : measure();
}
