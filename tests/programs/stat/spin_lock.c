// SPDX-License-Identifier: Apache-2.0
//
// Disease: a spin lock of the program's own around a sum, taken for each number.
// Cure: each thread sums up for itself.
#include "crew.h"

static volatile int word __attribute__((aligned(128)));
static uint64_t pot __attribute__((aligned(128)));

static SEEN void put(uint64_t amount) {
#ifdef CURED
    pot = 0;
    (void)amount;
#else
    while (__atomic_exchange_n(&word, 1, __ATOMIC_ACQUIRE) != 0) /* HERE: true-sharing */
        while (__atomic_load_n(&word, __ATOMIC_RELAXED) != 0)    /* HERE: true-sharing */
            ;
    pot += amount;                                /* HERE: true-sharing */
    __atomic_store_n(&word, 0, __ATOMIC_RELEASE); /* HERE: true-sharing */
#endif
}

static void *earn(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++) {
        hand->result = chew(hand->result, 20);
#ifndef CURED
        put(hand->result);
#endif
    }
    put(hand->result);
    return NULL;
}

int main(int argc, char **argv) {
    crew_work(crew_size(argc, argv), 10000000, earn);
    return 0;
}
