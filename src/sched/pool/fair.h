// SPDX-License-Identifier: Apache-2.0
/* How a worker divides its time between what its order prefers (pick_own: newest first, and what waits only after that)
 * and what this order would let starve. Now and then it picks out of turn, from one of two sources:
 *
 *   DEQUE   the oldest of its deque, a branch that no thief has taken
 *   OTHERS  what comes after the deque: the inbox, the shared queue, the units that have yielded or were preempted
 *
 * By time, not by the number of picks. If each few picks began an old branch, deep recursion would have thousands of
 * stacks in use. And a unit that computes would have whole slices, where those that wait often have a microsecond: one
 * out of turn has run for R when the worker picks next, and its source is due again when all others have had R, too.
 * So each source has at most half of the time while the order has something to run, and a third where both have
 * units that compute.
 *
 * The short units of OTHERS share a turn: those that waited when it began, for FAIR_US. If each had a turn, the last of
 * a thousand would wait for a tenth of a second. One that waits again has the next turn, so that one that polls by
 * yields does not have half of the time.
 *
 *   since, source   the present turn began then, with a unit from there; source FAIR_NONE: in turn
 *   more            so many units may follow in this turn
 *   is_bounded      a tick ends it: none of its units is one that is not preempted
 *   due             when each source is due; a turn of the other does not count as time that the others have had
 *
 * A unit that computes would let the others wait for a whole slice, if it is picked out of turn: its turn ends after
 * TURN_US, where something waits that the order prefers (fair_is_over; the tick for it: preempt/tick.c).
 *
 * The worker's own, inside. Modelled in tests/model/fair.pml. The idea, time that is owed instead of turns: Stoica and
 * Abdel-Wahab, "Earliest eligible virtual deadline first" (1995); of two sides with equal weights nothing is left of
 * virtual time but the debt of one. */
#ifndef THRUM_SCHED_POOL_FAIR_H
#define THRUM_SCHED_POOL_FAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "arch_ticks.h"
#include "os/ticks.h"

enum { FAIR_US = 100, TURN_US = 500 };

#define FAIR_NEVER UINT64_MAX

enum fair_source { FAIR_DEQUE, FAIR_OTHERS, FAIR_SOURCES, FAIR_NONE = FAIR_SOURCES };

struct fair {
    uint64_t since, due[FAIR_SOURCES]; /* ticks */
    uint32_t source, more;             /* enum fair_source */
    bool is_bounded;
};

static inline void fair_init(struct fair *fair) {
    fair->due[FAIR_DEQUE] = fair->due[FAIR_OTHERS] = 0;
    fair->source = FAIR_NONE;
}

/* What was picked out of turn, if anything was, has run up to now. A turn that a tick can end is over after TURN_US, where
 * something waits. If it took longer, the tick was late or the kernel ran other things meanwhile: not the unit. */
static inline void fair_settle(struct fair *fair, uint64_t now) {
    if (fair->source == FAIR_NONE)
        return;
    uint64_t us = ticks_per_us(), least = FAIR_US * us, ran = now - fair->since;
    if (fair->is_bounded && us != 0 && ran > TURN_US * us)
        ran = TURN_US * us;
    uint64_t *due = &fair->due[fair->source], *other = &fair->due[1 - fair->source];
    *due = now + (ran > least ? ran : least);
    *other = (*other > fair->since ? *other : fair->since) + ran;
    fair->source = FAIR_NONE;
}

static inline void fair_begin(struct fair *fair, enum fair_source source, uint32_t more, bool is_bounded,
                              uint64_t now) {
    fair->since = now;
    fair->source = source;
    fair->more = more;
    fair->is_bounded = is_bounded;
}

/* The present turn is a short one of several units, and the next of them may have its part of it. */
static inline bool fair_shares(const struct fair *fair, uint64_t now) {
    return fair->source != FAIR_NONE && fair->more > 0 && now - fair->since < FAIR_US * ticks_per_us();
}

/* ns until the turn of the present unit is over; FAIR_NEVER: it was picked in turn. */
static inline uint64_t fair_left(const struct fair *fair) {
    uint64_t us = ticks_per_us();
    if (fair->source == FAIR_NONE || us == 0)
        return FAIR_NEVER;
    uint64_t ran = (arch_ticks() - fair->since) / us;
    return ran < TURN_US ? (TURN_US - ran) * 1000 : 0;
}

/* The turn of the present unit has lasted long enough, if others wait that precede it. */
static inline bool fair_is_over(const struct fair *fair) {
    return fair_left(fair) == 0;
}

#endif
