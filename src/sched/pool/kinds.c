// SPDX-License-Identifier: Apache-2.0
/* The kinds of scheduler that the library has: in which order each serves its pools. They call nothing that a user's could
 * not. */
#include <errno.h>

#include "base/misuse.h"
#include "sched/pool/scheduler.h"

static bool run_from(struct thrum_pool *pool) {
    struct thrum_unit *unit = thrum_pool_pop(pool);
    if (unit == NULL)
        return false;
    thrum_run(unit);
    return true;
}

/* From pool `first` on, in a circle. Returns the pool that had something, or `count`. */
static unsigned run_one(struct thrum_sched *sched, unsigned first) {
    for (unsigned i = 0; i < sched->count; i++) {
        unsigned at = (first + i) % sched->count;
        if (run_from(sched->pools[at]))
            return at;
    }
    return sched->count;
}

static void run_first(struct thrum_sched *sched, void *unused) {
    (void)unused;
    while (!thrum_sched_stopping(sched))
        if (run_one(sched, 0) == sched->count)
            thrum_sched_idle(sched);
}

static void run_round_robin(struct thrum_sched *sched, void *unused) {
    (void)unused;
    for (unsigned next = 0; !thrum_sched_stopping(sched);) {
        unsigned at = run_one(sched, next);
        if (at == sched->count)
            thrum_sched_idle(sched);
        else
            next = at + 1;
    }
}

static void run_exhaust(struct thrum_sched *sched, void *unused) {
    (void)unused;
    for (unsigned at = 0; !thrum_sched_stopping(sched);) {
        unsigned found = run_one(sched, at);
        if (found == sched->count)
            thrum_sched_idle(sched);
        else
            at = found;
    }
}

/* Below `limit`, or 0. */
static unsigned draw(struct thrum_sched *sched, unsigned limit) {
    sched->random = sched->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return limit > 0 ? (unsigned)(sched->random >> 33) % limit : 0;
}

/* The circle begins at a random one of the others: if the first could be drawn too, the second would be next twice as
 * often as the rest. */
static void run_random(struct thrum_sched *sched, void *unused) {
    (void)unused;
    while (!thrum_sched_stopping(sched)) {
        if (run_from(sched->pools[0]))
            continue;
        if (run_one(sched, 1 + draw(sched, sched->count - 1)) == sched->count)
            thrum_sched_idle(sched);
    }
}

/* From its own pools, the highest level first. */
static bool run_own(struct thrum_sched *sched) {
    for (unsigned level = 0; level < sched->levels; level++)
        if (run_from(sched->pools[level]))
            return true;
    return false;
}

static unsigned others_of(unsigned count, unsigned levels) {
    return count / levels - 1;
}

/* The oldest unit of the highest level that is not empty in one of the others; they are asked in a circle. */
static bool run_stolen(struct thrum_sched *sched) {
    unsigned others = others_of(sched->count, sched->levels), first = draw(sched, others);
    for (unsigned i = 0; i < sched->levels * others; i++) {
        unsigned level = i / others, other = (first + i) % others;
        struct thrum_unit *unit = thrum_pool_steal(sched->pools[sched->levels + level * others + other]);
        if (unit != NULL) {
            thrum_run(unit);
            return true;
        }
    }
    return false;
}

static void run_stealing(struct thrum_sched *sched, void *unused) {
    (void)unused;
    while (!thrum_sched_stopping(sched))
        if (!run_own(sched) && !run_stolen(sched))
            thrum_sched_idle(sched);
}

static int create(thrum_sched_t *result, void (*run)(thrum_sched_t sched, void *data),
                  const thrum_pool_t *pools, unsigned count, unsigned levels) {
    int error = thrum_sched_create_user(result, run, NULL, pools, count);
    if (error == 0) {
        (*result)->levels = levels;
        (*result)->by_order = run == run_first || levels > 0;
        (*result)->may_hold = false;
    }
    return error;
}

int thrum_sched_create(thrum_sched_t *sched, enum thrum_sched_kind kind, const thrum_pool_t *pools,
                       unsigned count) {
    if (is_null(sched) || is_null(pools))
        return EINVAL;
    static void (*const runs[])(thrum_sched_t, void *) = {
        [THRUM_SCHED_FIRST] = run_first,
        [THRUM_SCHED_ROUND_ROBIN] = run_round_robin,
        [THRUM_SCHED_EXHAUST] = run_exhaust,
        [THRUM_SCHED_RANDOM] = run_random,
    };
    if ((unsigned)kind >= sizeof runs / sizeof *runs)
        return EINVAL;
    return create(sched, runs[kind], pools, count, 0);
}

/* Its own pools go to the front, then the others' by levels. */
int thrum_sched_create_stealing(thrum_sched_t *result, const thrum_pool_t *pools, unsigned queues,
                                unsigned levels, unsigned own) {
    if (is_null(result) || is_null(pools))
        return EINVAL;
    if (levels == 0 || own >= queues || queues > SCHED_POOLS / levels)
        return EINVAL;
    int error = create(result, run_stealing, pools, queues * levels, levels);
    if (error != 0)
        return error;
    struct thrum_pool **next = (*result)->pools;
    for (unsigned level = 0; level < levels; level++)
        *next++ = pools[own * levels + level];
    for (unsigned level = 0; level < levels; level++)
        for (unsigned queue = 0; queue < queues; queue++)
            if (queue != own)
                *next++ = pools[queue * levels + level];
    return 0;
}
