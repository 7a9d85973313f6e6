// SPDX-License-Identifier: Apache-2.0
//
// Disease: all threads count their steps in one variable.
// Cure: each thread counts for itself, and adds at the end.
#include "crew.h"

static volatile uint64_t requests;

static SEEN uint64_t serve(uint64_t state) {
#ifndef CURED
    __atomic_fetch_add(&requests, 1, __ATOMIC_RELAXED); /* HERE: true-sharing */
#endif
    return chew(state, 2); /* HERE: true-sharing */
}

static void *serve_some(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++)
        hand->result = serve(hand->result);
    __atomic_fetch_add(&requests, (uint64_t)hand->share, __ATOMIC_RELAXED);
    return NULL;
}

int main(int argc, char **argv) {
    crew_work(crew_size(argc, argv), 100000000, serve_some);
    return 0;
}
