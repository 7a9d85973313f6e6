// SPDX-License-Identifier: Apache-2.0
//
// Disease: the first lines of the program pin it to one CPU, as a library's initialisation may, and all its threads inherit that.
// Cure: they run where they like.
#include <sched.h>

#include "crew.h"

static SEEN uint64_t mix(uint64_t value, long times) {
    for (long i = 0; i < times; i++)
        value = value * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return value;
}

static void *compute(void *arg) {
    struct hand *hand = arg;
    hand->result = mix(hand->index + 1, hand->share);
    return NULL;
}

#ifndef CURED
static void pin(void) {
    cpu_set_t allowed, first;
    CPU_ZERO(&first);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        exit(1);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&first) == 0; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            CPU_SET(cpu, &first);
    if (sched_setaffinity(0, sizeof first, &first) != 0)
        exit(1);
}
#endif

int main(int argc, char **argv) {
#ifndef CURED
    pin();
#endif
    crew_work(crew_size(argc, argv), 600000000, compute);
    return 0;
}
