// SPDX-License-Identifier: Apache-2.0
/* See ticks.h. */
#include "os/ticks.h"

#include <stdbool.h>

#include "base/atomic.h"
#include "os/clock.h"

enum { ENOUGH_NS = 1000 * 1000 };

static uint64_t rate; /* 0 until known; then never changes */
static struct ticks_moment first;
static uint32_t state; /* of `first` */
enum { UNTOUCHED, AT_WORK, DONE };

/* Ticks before and after the other clock, the closest of a few tries. */
struct ticks_moment ticks_now(void) {
    enum { TRIES = 4 };
    struct ticks_moment best = {0, 0, UINT64_MAX};
    for (int i = 0; i < TRIES; i++) {
        uint64_t before = arch_ticks(), ns = clock_monotonic_ns(), apart = arch_ticks() - before;
        if (apart < best.apart)
            best = (struct ticks_moment){before + apart / 2, ns, apart};
    }
    return best;
}

static uint64_t measure(void) {
    uint32_t seen = UNTOUCHED;
    if (load_acquire(&state) != DONE) { /* pairs with the store of DONE: `first` is there */
        if (cas_relaxed(&state, &seen, AT_WORK)) {
            first = ticks_now();
            store_release(&state, DONE); /* pairs with the load above */
        }
        return 0;
    }
    if (clock_monotonic_ns() - first.ns < ENOUGH_NS)
        return 0;
    struct ticks_moment last = ticks_now();
    uint64_t ticks = last.ticks - first.ticks, us = (last.ns - first.ns) / 1000;
    if ((first.apart + last.apart) >
        ticks / 50) /* this thread was interrupted in between; it gets better as time passes */
        return 0;
    uint64_t found = ticks / us;
    store_relaxed(&rate, found != 0 ? found : 1);
    return load_relaxed(&rate);
}

uint64_t ticks_per_us(void) {
    uint64_t known = load_relaxed(&rate);
    return known != 0 ? known : measure();
}
