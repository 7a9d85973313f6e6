// SPDX-License-Identifier: Apache-2.0
//
// Disease: many more threads that compute than CPUs, in steps that all of them have to finish before the next begins, as
// simulations do. Each step costs a context switch for each thread.
// Cure: no more threads than CPUs, whatever the argument says.
#include <sched.h>

#include "crew.h"

enum { CELLS = 3840, ROUNDS = 1200, STEPS = 100 };

static uint64_t cells[CELLS];
static pthread_barrier_t round_ended;

static SEEN void advance(unsigned begin, unsigned end) {
    for (unsigned i = begin; i < end; i++)
        cells[i] = chew(cells[i], STEPS);
}

static void *simulate(void *arg) {
    struct hand *hand = arg;
    for (int i = 0; i < ROUNDS; i++) {
        advance(CELLS * hand->index / hand->crew, CELLS * (hand->index + 1) / hand->crew);
        pthread_barrier_wait(&round_ended);
    }
    return NULL;
}

int main(int argc, char **argv) {
    unsigned size = crew_size(argc, argv);
#ifdef CURED
    cpu_set_t usable;
    if (sched_getaffinity(0, sizeof usable, &usable) != 0)
        return 1;
    if (size > (unsigned)CPU_COUNT(&usable))
        size = (unsigned)CPU_COUNT(&usable);
#endif
    if (pthread_barrier_init(&round_ended, NULL, size) != 0)
        return 1;
    crew_work(size, 0, simulate);
    return 0;
}
