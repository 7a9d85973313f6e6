// SPDX-License-Identifier: Apache-2.0
//
// Disease: a home-made lock that waits with sched_yield() in a loop: waiters use as much CPU time as the thread that
// works, half of it in the kernel.
// Cure: nothing is shared but the sum at the end.
#include <sched.h>
#include <stdatomic.h>

#include "crew.h"

enum { STEPS = 4000, STEP = 100000 };

static atomic_flag taken = ATOMIC_FLAG_INIT;
static uint64_t shared;

static SEEN void take(void) {
    while (atomic_flag_test_and_set_explicit(&taken, memory_order_acquire))
        sched_yield(); /* HERE: busy-wait */
}

static void give(void) {
    atomic_flag_clear_explicit(&taken, memory_order_release);
}

static void *work(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++) {
#ifdef CURED
        hand->result = chew(hand->result, STEP);
#else
        take();
        shared = chew(shared, STEP);
        give();
#endif
    }
    take();
    shared += hand->result;
    give();
    return NULL;
}

int main(int argc, char **argv) {
    crew_work(crew_size(argc, argv), STEPS, work);
    return 0;
}
