// SPDX-License-Identifier: Apache-2.0
/* What the operations of Argobots' interface (abt.c) and their native counterparts (native.c) have in common. */
#ifndef THRUM_BENCH_ABT_MEASURE_H
#define THRUM_BENCH_ABT_MEASURE_H

#include <time.h>

enum {
    THREADS = 1000,
    BATCHES = 20,
    TURNS = 50000,
};

static inline double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* By that clock, of a run that follows one to warm up. */
static inline double ns_each(void (*run)(void), double count, clockid_t clock) {
    run();
    double began = now(clock);
    run();
    return (now(clock) - began) / count;
}

#endif
