// SPDX-License-Identifier: Apache-2.0
/* Which idle worker wakes up for timers. One of the parked workers, the keeper, sleeps until the earliest deadline of
 * all; the others sleep until they are woken. A worker that searches looks at all timers (timers_look_everywhere), so
 * an awake keeper need not be replaced before it leaves the search to run something.
 *
 *   keeper  its id + 1; 0: none. Taken by a cas from 0 by a worker that is about to sleep and has found timers; given up by a
 *           store of the keeper's own when it leaves the search.
 *   until   written by the keeper only. A starter of a timer with an earlier deadline tells the keeper.
 *             0            it is awake, and will look before it sleeps
 *             a deadline   it sleeps until then
 *             TIMER_NEVER  it sleeps for good; or there is no keeper
 *
 * No deadline is slept through while a worker is parked. Each of these writes, has a full fence, then reads:
 *
 *   starter   next of its store      until, keeper; without a keeper the words of the parked
 *   sleeper   its own word, PARKED   next of all stores, keeper
 *   keeper    until                  next of all stores, again
 *   leaver    keeper = 0             next of all stores, the words of the parked
 *
 * So of any two that concern each other one sees the other's write. Starter and leaver change the word of a parked
 * worker that they found to LOOK, and the sleeper starts again from the top. A worker that was told and then woken
 * for work (LOOK -> WOKEN) may be gone without having looked. Therefore every worker that leaves the search, not only
 * a keeper, ensures that there is a keeper if there are timers.
 *
 * Modelled in tests/model/timekeeper.pml. */
#ifndef THRUM_SCHED_TIME_TIMEKEEPER_H
#define THRUM_SCHED_TIME_TIMEKEEPER_H

#include <stdint.h>

#include "base/inside.h"

struct worker;

/* Before there are workers: in a child of fork, too, whose parent may have had a keeper. */
void timekeeper_init(void);

/* A timer was started that is the first of its store. */
SIGSAFE void timekeeper_tell(uint64_t deadline);

/* The caller's worker is parked, its word said so before a full fence: until when may it sleep? TIMER_NEVER: it is not
 * the keeper, or there are no timers. */
uint64_t timekeeper_until(void);

/* The worker sleeps no longer, it searches. */
INSIDE void timekeeper_wakes(struct worker *worker);

/* The worker does not search any longer. */
INSIDE void timekeeper_leave(struct worker *worker);

/* The keeper's id, UINT32_MAX for none: a hint. */
SIGSAFE uint32_t timekeeper_current(void);

#endif
