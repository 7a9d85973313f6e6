// SPDX-License-Identifier: Apache-2.0
//
// Disease: rand() in all threads: in libc it is random(), which takes a lock each time.
// Cure: rand_r() with a seed of the thread's own.
#include "crew.h"

static SEEN int throw_die(unsigned *seed) {
#ifdef CURED
    return rand_r(seed) % 6;
#else
    (void)seed;
    return rand() % 6; /* HERE: hidden-lock */
#endif
}

static void *play(void *arg) {
    struct hand *hand = arg;
    unsigned seed = hand->index + 1;
    for (long i = 0; i < hand->share; i++)
        hand->result = chew(hand->result + (uint64_t)throw_die(&seed), 8);
    return NULL;
}

int main(int argc, char **argv) {
    crew_work(crew_size(argc, argv), 25000000, play);
    return 0;
}
