// SPDX-License-Identifier: Apache-2.0
/* Workers without work: they search for a while, then park on a futex word of their own; a push wakes one parked
 * worker if none is searching.
 *
 * `count` holds the number of parked workers in its low half and of searching ones in its high half, which is signed:
 * a woken worker may have found something before its waker has counted it as searching. A worker's word:
 *
 *   AWAKE  -> PARKED  the worker, before it counts itself as parked
 *   PARKED -> LOOK    a thread that wants it to recompute how long to sleep (cas): a timer came, or the timekeeper left
 *   LOOK   -> PARKED  the worker itself (cas), before it recomputes
 *   PARKED, LOOK -> WOKEN  the waker (cas), which also moves the worker's count from parked to searching
 *   PARKED, LOOK -> AWAKE  the worker itself (cas), when it found work after all or its deadline has come
 *   WOKEN  -> AWAKE   the worker
 *
 * No wake-up is lost. Pusher: (1) puts a unit where searchers look, (2) reads count. Parker: (3) counts itself as
 * parked and not searching any more, (4) looks everywhere once more. If (2) does not see (3), then (4) sees (1): that
 * needs a full fence between (1) and (2), and between (3) and (4). The frequent side, the pusher, has a compiler
 * barrier only; the parker's fence is membarrier(2), which makes up for both (os/membarrier.h). If (2) sees a worker
 * searching, that worker does (3) and (4) later, or finds work, not necessarily this. Therefore the last searcher
 * looks everywhere once more when it leaves while others are parked, because it found work or its worker is stopped.
 * It does so after (3) and its fence, like a parker, and wakes another worker for what it sees (idle_found).
 *
 * Modelled in tests/model/idle.pml; with timers in timekeeper.pml. */
#ifndef THRUM_SCHED_IDLE_H
#define THRUM_SCHED_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/inside.h"
#include "os/membarrier.h"

enum { IDLE_PARKED = 1, IDLE_SEARCHING = 1 << 16 };

struct idle {
    _Alignas(128) uint32_t count; /* its changes pair, by the fences, with the load in idle_wake_check */
    uint32_t resting;             /* tick.h: workers that run a unit without ticks */
    bool fenced;                  /* r/o: pushers fence, since there is no membarrier */
};

enum parking_state { PARKING_AWAKE, PARKING_PARKED, PARKING_WOKEN, PARKING_LOOK };

struct parking {
    _Alignas(64) uint32_t state;
};

INSIDE void idle_wake_one(struct idle *idle);
/* No worker would run it soon, unless one is searching. */
INSIDE void idle_wake_resting(struct idle *idle);

/* After a push. */
INSIDE static inline void idle_wake_check(struct idle *idle) {
    fence_frequent(idle->fenced); /* pairs with fence_rare in idle_park, idle_found and tick_rest */
    uint32_t count = load_relaxed(&idle->count);
    if (__builtin_expect(count % IDLE_SEARCHING != 0 && (int32_t)count < IDLE_SEARCHING, 0))
        idle_wake_one(idle);
    else if (__builtin_expect(load_relaxed(&idle->resting) != 0, 0))
        idle_wake_resting(idle);
}

/* A worker begins to search. False: enough others do; it should look once and park. */
INSIDE bool idle_search(struct idle *idle);

/* It found work, and stops searching. If no other worker searches, and work_is_there() sees more, another is woken. */
INSIDE void idle_found(struct idle *idle, bool (*work_is_there)(void));

/* A searching worker parks until it is woken or until until() (ns, CLOCK_MONOTONIC; TIMER_NEVER: no deadline; asked
 * before each sleep), unless work_somewhere() says that there is some. It searches again when this returns. */
INSIDE void idle_park(struct idle *idle, struct parking *parking, bool (*work_somewhere)(void),
                      uint64_t (*until)(void));

/* If this one is parked it asks until() again. True: it is, and will. */
SIGSAFE bool idle_look_again(struct parking *parking);

/* Wakes this worker if it is parked, and returns whether: what it will find is for it alone. */
INSIDE bool idle_wake_this(struct idle *idle, struct parking *parking);

#endif
