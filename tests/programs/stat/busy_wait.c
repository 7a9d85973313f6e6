// SPDX-License-Identifier: Apache-2.0
//
// Disease: threads take turns and wait for theirs by reading a variable again and again. With more threads than CPUs those
// that wait keep the one whose turn it is from its CPU.
// Cure: no turns: what has to be in order is put in order at the end.
#include <stdatomic.h>

#include "crew.h"

enum { STEPS = 400, STEP = 1000000 };

static atomic_uint turn;
static uint64_t results[MOST_THREADS];

#ifdef CURED
static void await_turn(unsigned mine) {
    (void)mine;
}
#else
static SEEN void await_turn(unsigned mine) {
    while (atomic_load_explicit(&turn, memory_order_acquire) != mine) /* HERE: busy-wait */
        ;                                                             /* HERE: busy-wait */
}
#endif

static void *take_turns(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++) {
        await_turn(hand->index);
        results[hand->index] = chew(results[hand->index], STEP);
        atomic_store_explicit(&turn, (hand->index + 1) % hand->crew, memory_order_release);
    }
    return NULL;
}

int main(int argc, char **argv) {
    crew_work(crew_size(argc, argv), STEPS, take_turns);
    return 0;
}
