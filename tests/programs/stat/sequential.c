// SPDX-License-Identifier: Apache-2.0
//
// Disease: seven tenths of the work are done by the first thread before there are others; with any number of threads the
// rest is all that becomes shorter (Amdahl).
// Cure: the first part is shared out as well.
#include "crew.h"

enum { STEPS = 400, STEP = 1000000 };

static SEEN uint64_t prepare(uint64_t state, long steps) {
    for (long i = 0; i < steps * STEP; i++)                          /* HERE: sequential */
        state = state * 6364136223846793005U + 1442695040888963407U; /* HERE: sequential */
    return state;
}

static void *prepare_share(void *arg) {
    struct hand *hand = arg;
    hand->result = prepare(hand->result, hand->share);
    return NULL;
}

static void *work(void *arg) {
    struct hand *hand = arg;
    hand->result = chew(hand->result, hand->share * STEP);
    return NULL;
}

int main(int argc, char **argv) {
    const unsigned size = crew_size(argc, argv);
#ifdef CURED
    crew_work(size, STEPS * 7 / 10, prepare_share);
#else
    struct hand alone = {0, 1, STEPS * 7 / 10, 1, 0};
    prepare_share(&alone);
    crew_sum = alone.result;
#endif
    crew_work(size, STEPS * 3 / 10, work);
    return 0;
}
