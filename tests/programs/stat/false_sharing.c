// SPDX-License-Identifier: Apache-2.0
//
// Disease: each thread counts in a counter of its own, and the counters stand side by side in one cache line, which moves
// from CPU to CPU with each of them. (Atomic, as of counters that others read: what processors do with plain ones, in their
// store buffers, hides most of it on some.)
// Cure: a cache line for each.
#include "crew.h"

#ifdef CURED
#define APART __attribute__((aligned(128)))
#else
#define APART
#endif

static struct counter { volatile uint64_t count APART; } counters[MOST_THREADS] __attribute__((aligned(128)));

static SEEN void count(struct counter *own, long times) {
    for (long i = 0; i < times; i++)                          /* HERE: false-sharing */
        __atomic_fetch_add(&own->count, 1, __ATOMIC_RELAXED); /* HERE: false-sharing */
}

static void *count_some(void *arg) {
    struct hand *hand = arg;
    count(&counters[hand->index], hand->share);
    hand->result = counters[hand->index].count;
    return NULL;
}

int main(int argc, char **argv) {
    crew_work(crew_size(argc, argv), 60000000, count_some);
    return 0;
}
