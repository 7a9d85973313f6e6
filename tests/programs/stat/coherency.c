// SPDX-License-Identifier: Apache-2.0
//
// Disease: all threads count in one atomic variable. No lock, and no waiting that anybody could see; the cache line goes
// from CPU to CPU, the longer the more there are.
// Cure: a counter a thread, added up at the end.
#include <stdatomic.h>

#include "crew.h"

static atomic_ulong total;

static SEEN void count(long times) {
#ifdef CURED
    atomic_ulong own = 0;
    atomic_ulong *counter = &own;
#else
    atomic_ulong *counter = &total;
#endif
    for (long i = 0; i < times; i++)                                 /* HERE: coherency */
        atomic_fetch_add_explicit(counter, 1, memory_order_relaxed); /* HERE: coherency */
#ifdef CURED
    atomic_fetch_add(&total, own);
#endif
}

static void *count_some(void *arg) {
    const struct hand *hand = arg;
    count(hand->share);
    return NULL;
}

int main(int argc, char **argv) {
    crew_work(crew_size(argc, argv), 200000000, count_some);
    return total == 200000000 ? 0 : 1;
}
