// SPDX-License-Identifier: Apache-2.0
/* See idle.h. */
#include "sched/idle.h"

#include <errno.h>

#include "os/futex.h"
#include "os/membarrier.h"
#include "sched/time/timekeeper.h"
#include "sched/worker.h"

static bool is_parked(uint32_t state) {
    return state == PARKING_PARKED || state == PARKING_LOOK;
}

static bool claim(struct idle *idle, struct parking *parking) {
    uint32_t state = load_relaxed(&parking->state);
    do {
        if (!is_parked(state))
            return false;
    } while (!cas_acq_rel(&parking->state, &state, PARKING_WOKEN)); /* pairs with idle_park's */
    fetch_add_seq_cst(&idle->count, (uint32_t)(IDLE_SEARCHING - IDLE_PARKED));
    futex_wake(&parking->state, 1);
    return true;
}

/* Of those on this NUMA node, or of the others. */
static bool wake_where(struct idle *idle, uint32_t keeper, uint8_t node, bool near) {
    for (uint32_t i = 0; i < load_acquire(&runtime.count); i++)
        if (i != keeper && (load_relaxed(&runtime.node_of[i]) == node) == near &&
            claim(idle, &runtime.workers[i]->parking))
            return true;
    return false;
}

/* Near workers first: pushed units lie there. The timekeeper only if no other worker is parked: another would have to
 * be woken to replace it. A worker that its waker has not counted out yet may be at rest by now. */
void idle_wake_one(struct idle *idle) {
    const struct worker *self = worker_here();
    uint8_t node = self != NULL ? load_relaxed(&runtime.node_of[self->id]) : 0;
    uint32_t keeper = timekeeper_current();
    if (wake_where(idle, keeper, node, true) || (runtime.nodes > 1 && wake_where(idle, keeper, node, false)))
        return;
    if (keeper < load_acquire(&runtime.count) && claim(idle, &runtime.workers[keeper]->parking))
        return;
    if (load_relaxed(&idle->resting) != 0)
        tick_wake_resting();
}

void idle_wake_resting(struct idle *idle) {
    uint32_t count = load_relaxed(&idle->count);
    if ((int32_t)count < IDLE_SEARCHING && count % IDLE_SEARCHING == 0)
        tick_wake_resting();
}

bool idle_look_again(struct parking *parking) {
    uint32_t state = PARKING_PARKED;
    if (cas_acq_rel(&parking->state, &state, PARKING_LOOK)) /* pairs with idle_park's */
        futex_wake(&parking->state, 1);
    return is_parked(state);
}

/* A worker that is awake sees its inbox before it parks: (1) and (2) of idle.h with the word in place of the count. */
bool idle_wake_this(struct idle *idle, struct parking *parking) {
    fence_seq_cst(); /* after the push; pairs with fence_rare in idle_park */
    if (claim(idle, parking))
        return true;
    if (load_relaxed(&idle->resting) != 0)
        tick_wake_resting();
    return false;
}

bool idle_search(struct idle *idle) {
    uint32_t others = fetch_add_seq_cst(&idle->count, (uint32_t)IDLE_SEARCHING) / IDLE_SEARCHING;
    return others == 0 || others * 2 < load_relaxed(&runtime.running);
}

/* The fence only where nothing is seen without it: then there is little to do, and time for it. */
void idle_found(struct idle *idle, bool (*work_is_there)(void)) {
    uint32_t before = fetch_sub_seq_cst(&idle->count, (uint32_t)IDLE_SEARCHING);
    bool others_rest = load_relaxed(&idle->resting) != 0;
    if ((int32_t)before >= 2 * IDLE_SEARCHING || (before % IDLE_SEARCHING == 0 && !others_rest))
        return;
    if (!work_is_there()) {
        fence_rare(idle->fenced); /* pairs with fence_frequent in idle_wake_check */
        if (!work_is_there())
            return;
    }
    idle_wake_check(idle);
}

/* False: the deadline has come. */
static bool sleep_until(struct parking *parking, uint64_t deadline) {
    if (deadline == TIMER_NEVER) {
        futex_wait(&parking->state, PARKING_PARKED);
        return true;
    }
    if (timer_now() >= deadline)
        return false;
    struct timespec time = timer_spec(deadline);
    return futex_wait_until(&parking->state, PARKING_PARKED, CLOCK_MONOTONIC, &time) != -ETIMEDOUT;
}

void idle_park(struct idle *idle, struct parking *parking, bool (*work_somewhere)(void),
               uint64_t (*until)(void)) {
    store_relaxed(&parking->state, PARKING_PARKED);
    fetch_add_seq_cst(&idle->count, (uint32_t)(IDLE_PARKED - IDLE_SEARCHING));
    fence_rare(idle->fenced); /* pairs with fence_frequent in idle_wake_check */
    bool stay_awake = work_somewhere();
    for (;;) {
        /* This and the next pair with claim and idle_look_again, as does the last of this loop. */
        uint32_t state = load_acquire(&parking->state);
        if (state == PARKING_WOKEN)
            break; /* its waker has counted it as searching */
        if (stay_awake && cas_acq_rel(&parking->state, &state, PARKING_AWAKE)) {
            fetch_add_seq_cst(&idle->count, (uint32_t)(IDLE_SEARCHING - IDLE_PARKED));
            return;
        }
        /* Pairs with idle_look_again: until() sees what that was for. */
        if (!stay_awake && (state == PARKING_PARKED || cas_acq_rel(&parking->state, &state, PARKING_PARKED)))
            stay_awake = !sleep_until(parking, until());
    }
    store_relaxed(&parking->state, PARKING_AWAKE);
}
