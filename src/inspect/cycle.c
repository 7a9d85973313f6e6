// SPDX-License-Identifier: Apache-2.0
/* Threads that wait for each other. Each waits for one at most, so that to follow is to find. */
#include <time.h>

#include "inspect/inspect.h"
#include "sched/awaits.h"

enum { LONGEST = 4096, REST_NS = 2000000 };

/* A step: whom it waits for. 0: nobody. */
static uint64_t next_of(const struct inspect_source *source, uint64_t handle, uint64_t *steps) {
    if (*steps == 0)
        return 0;
    --*steps;
    return inspect_awaited(source, handle);
}

/* The length of the cycle that leads from `first` back to it, if none in it has a lower handle; a sum over what is in
 * it, to be compared, is in *sum. */
static size_t follow(const struct inspect_source *source, uint64_t first, uint64_t *members, size_t max,
                     uint64_t *steps, uint64_t *sum) {
    uint64_t at = first;
    *sum = 0;
    for (size_t length = 0; length < LONGEST; length++) {
        if (length < max)
            members[length] = at;
        *sum = *sum * 31 + at;
        at = next_of(source, at, steps);
        if (at == first)
            return length + 1;
        if (at < first) /* its to tell; or nobody */
            return 0;
    }
    return 0;
}

size_t inspect_cycle(const struct inspect_source *source, const struct inspect_thread *thread,
                     uint64_t *members, size_t max, uint64_t *steps) {
    uint64_t sum, again;
    if (thread->state != INSPECT_WAITS || thread->owner < thread->handle)
        return 0;
    if (follow(source, thread->handle, members, max, steps, &sum) == 0)
        return 0;
    nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
    size_t length = follow(source, thread->handle, members, max, steps, &again);
    return sum == again ? length : 0;
}
