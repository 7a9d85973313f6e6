// SPDX-License-Identifier: Apache-2.0
/* See idle.h. */
#include "sched/idle.h"

#include <time.h>

#include "os/clock.h"
#include "os/futex.h"
#include "os/membarrier.h"
#include "sched/worker.h"

static bool claim(struct idle *idle, struct parking *parking) {
    uint32_t state = PARKING_PARKED;
    if (load_relaxed(&parking->state) != PARKING_PARKED ||
        !cas_acq_rel(&parking->state, &state, PARKING_WOKEN))
        return false;
    fetch_add_seq_cst(&idle->count, (uint32_t)(IDLE_SEARCHING - IDLE_PARKED));
    futex_wake(&parking->state, 1);
    return true;
}

void idle_wake_one(struct idle *idle) {
    uint32_t workers = load_acquire(&scheduler.count);
    for (uint32_t i = 0; i < workers; i++)
        if (claim(idle, &scheduler.workers[i]->parking))
            return;
}

/* A worker that is awake sees its inbox before it parks: (1) and (2) of idle.h with the word in place of the count. */
void idle_wake_this(struct idle *idle, struct parking *parking) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    claim(idle, parking);
}

bool idle_search(struct idle *idle) {
    uint32_t others = fetch_add_seq_cst(&idle->count, (uint32_t)IDLE_SEARCHING) / IDLE_SEARCHING;
    return others == 0 || others * 2 < load_relaxed(&scheduler.count);
}

void idle_found(struct idle *idle, bool more) {
    uint32_t before = fetch_sub_seq_cst(&idle->count, (uint32_t)IDLE_SEARCHING);
    if (more && before / IDLE_SEARCHING == 1)
        idle_wake_check(idle);
}

static void sleep_until(struct parking *parking, uint64_t deadline) {
    struct timespec time = {(time_t)(deadline / 1000000000), (long)(deadline % 1000000000)};
    futex_wait_until(&parking->state, PARKING_PARKED, CLOCK_MONOTONIC, deadline == UINT64_MAX ? NULL : &time);
}

static bool has_come(uint64_t deadline) {
    return deadline != UINT64_MAX && clock_monotonic_ns() >= deadline;
}

void idle_park(struct idle *idle, struct parking *parking, bool (*work_somewhere)(void), uint64_t deadline) {
    store_relaxed(&parking->state, PARKING_PARKED);
    fetch_add_seq_cst(&idle->count, (uint32_t)(IDLE_PARKED - IDLE_SEARCHING));
    if (idle->fenced)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    else
        membarrier_expedited();
    bool go_on = work_somewhere();
    for (;;) {
        uint32_t state = PARKING_PARKED;
        if (go_on && cas_acq_rel(&parking->state, &state, PARKING_AWAKE)) {
            fetch_add_seq_cst(&idle->count, (uint32_t)(IDLE_SEARCHING - IDLE_PARKED));
            return;
        }
        if (load_acquire(&parking->state) == PARKING_WOKEN)
            break; /* whoever woke it has counted it as searching */
        sleep_until(parking, deadline);
        go_on = has_come(deadline);
    }
    store_relaxed(&parking->state, PARKING_AWAKE);
}
