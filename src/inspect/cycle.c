// SPDX-License-Identifier: Apache-2.0
/* Threads that wait for each other. Each waits for at most one, so following the chain finds every cycle. */
#include <sys/syscall.h>
#include <time.h>

#include "inspect/inspect.h"
#include "os/syscall.h"

enum { REST_NS = 2000000 };

/* A step: the thread that it waits for. 0: none. */
static uint64_t next_of(struct inspect_search *search, uint64_t handle, bool *has_deadline) {
    if (search->steps == 0) {
        search->is_whole = false;
        return 0;
    }
    search->steps--;
    return inspect_awaited(search->source, handle, has_deadline);
}

/* It reports the cycles that both are in. External threads are not asked. */
static bool tells_before(const struct inspect_search *search, uint64_t handle, uint64_t first) {
    return handle < first && !inspect_is_external(search->source, handle);
}

/* The length of the cycle that leads from `first` back to it, if `first` reports it; a checksum of its members is in
 * *sum. A cycle that it only leads to comes past `mark`, which moves further and further on (Brent). */
static size_t follow(struct inspect_search *search, uint64_t first, uint64_t *members, size_t max,
                     uint64_t *sum, bool *has_deadline) {
    uint64_t at = first, mark = 0;
    *sum = 0;
    *has_deadline = false;
    for (size_t length = 0; length < INSPECT_CYCLE_MAX; length++) {
        if (length < max)
            members[length] = at;
        *sum = *sum * 31 + at;
        at = next_of(search, at, has_deadline);
        if (at == first)
            return length + 1;
        if (at == 0 || at == mark || tells_before(search, at, first))
            return 0;
        if ((length & (length - 1)) == 0)
            mark = at;
    }
    search->is_whole = false;
    return 0;
}

size_t inspect_cycle(struct inspect_search *search, const struct inspect_thread *thread, uint64_t *members,
                     size_t max, bool *has_deadline) {
    uint64_t sum, again;
    if (thread->state != INSPECT_WAITS || thread->owner == 0 ||
        follow(search, thread->handle, members, max, &sum, has_deadline) == 0)
        return 0;
    sys(SYS_nanosleep, &(struct timespec){.tv_nsec = REST_NS}, NULL);
    size_t length = follow(search, thread->handle, members, max, &again, has_deadline);
    return sum == again ? length : 0;
}
