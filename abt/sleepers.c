// SPDX-License-Identifier: Apache-2.0
/* Sleeping until something is in one of some pools: streams that are idle, and callers of ABT_pool_pop_wait.
 *
 * A sleeper puts itself into the list, and then looks at its pools once more. A push into one of the library's pools looks whether
 * the pool has sleepers under a lock under which the sleeper looks, too (pool_list.c); for other pools there is a fence on both
 * sides. So either the sleeper sees the push, or the push the sleeper. */
#include "base/container_of.h"
#include "direct.h"

struct sleeper {
    struct abt_waiter waiter; /* first: the waitlist's */
    struct abt_pool *const *pools;
    int count;
    struct abt_stream *stream;
};

static struct {
    struct abt_spin lock;
    uint32_t count; /* changed under lock, as each pool's `sleepers` */
    struct abt_waitlist list;
} sleepers;

static void count_locked(const struct sleeper *sleeper, uint32_t change) {
    store_relaxed(&sleepers.count, sleepers.count + change);
    for (int i = 0; i < sleeper->count; i++)
        store_relaxed(&sleeper->pools[i]->sleepers, sleeper->pools[i]->sleepers + change);
}

/* False: another has taken it out. */
static bool take_out_locked(struct sleeper *sleeper) {
    bool is_there = abt_waitlist_remove(&sleepers.list, &sleeper->waiter);
    if (is_there)
        count_locked(sleeper, UINT32_MAX); /* one less */
    return is_there;
}

static bool is_for(const struct sleeper *sleeper, const struct abt_pool *pool) {
    for (int i = 0; i < sleeper->count; i++)
        if (sleeper->pools[i] == pool)
            return true;
    return false;
}

/* One that has this pool or, if that is NULL, is this stream. */
static __attribute__((noinline)) void wake_sleeper(const struct abt_pool *pool,
                                                   const struct abt_stream *stream) {
    struct sleeper *found = NULL;
    abt_lock(&sleepers.lock);
    for (struct abt_waiter *at = sleepers.list.first; at != NULL && found == NULL; at = at->next) {
        struct sleeper *sleeper = container_of(at, struct sleeper, waiter);
        if (pool != NULL ? is_for(sleeper, pool) : sleeper->stream == stream)
            found = sleeper;
    }
    if (found != NULL)
        take_out_locked(found);
    abt_unlock(&sleepers.lock);
    if (found != NULL)
        abt_wake(&found->waiter);
}

void abt_sleeper_wake(const struct abt_pool *pool) {
    wake_sleeper(pool, NULL);
}

/* A push wakes one sleeper. If that one does something else first, or ends, another is to see to the rest. */
void abt_pools_pass_on(struct abt_pool *const *pools, int count) {
    for (int i = 0; i < count; i++)
        if (load_relaxed(&pools[i]->sleepers) != 0 && !abt_pool_is_empty(pools[i]))
            wake_sleeper(pools[i], NULL);
}

void abt_stream_wake(struct abt_stream *stream) {
    fence_seq_cst(); /* after the request; pairs with the fence in abt_pools_sleep */
    if (load_relaxed(&sleepers.count) != 0)
        wake_sleeper(NULL, stream);
}

/* Work that no push has told of is possible in a pool of the program's: it is looked at again. */
bool abt_stream_is_called(const struct abt_stream *stream) {
    if (stream == NULL)
        return false;
    const struct abt_sched *sched = stream->sched;
    return load_acquire(&stream->request) != 0 || (sched != NULL && load_acquire(&sched->request) != 0) ||
           (stream->is_primary && load_relaxed(&abt.primary_waits) != NULL) ||
           load_acquire(&abt.dump_is_wanted);
}

static bool is_awake(struct abt_pool *const *pools, int count, const struct abt_stream *stream) {
    for (int i = 0; i < count; i++)
        if (!abt_pool_is_empty_for_sure(pools[i]))
            return true;
    return abt_stream_is_called(stream);
}

struct pool_sleep {
    struct timed_wait timed_wait;
    struct sleeper *sleeper;
};

static bool give_up(struct timed_wait *timed_wait) {
    struct pool_sleep *sleep = container_of(timed_wait, struct pool_sleep, timed_wait);
    abt_spin_acquire(&sleepers.lock);
    bool is_mine = take_out_locked(sleep->sleeper);
    abt_spin_release(&sleepers.lock);
    return is_mine;
}

void abt_pools_sleep(struct abt_pool *const *pools, int count, uint64_t deadline, struct abt_stream *stream) {
    struct sleeper sleeper = {.pools = pools, .count = count, .stream = stream};
    if (is_awake(pools, count, stream))
        return;
    abt_wait_begin(&sleeper.waiter);
    abt_spin_acquire(&sleepers.lock);
    abt_waitlist_add(&sleepers.list, &sleeper.waiter);
    count_locked(&sleeper, 1);
    abt_spin_release(&sleepers.lock);
    fence_seq_cst(); /* pairs with those of a push (pool.h) and of abt_stream_wake */
    struct pool_sleep sleep = {.timed_wait = {.unit = sleeper.waiter.unit, .give_up = give_up},
                               .sleeper = &sleeper};
    if (is_awake(pools, count, stream) && give_up(&sleep.timed_wait)) {
        abt_wait_not(&sleeper.waiter);
        return;
    }
    struct abt_thread *thread = sleeper.waiter.thread;
    sleep.timed_wait.timer.deadline = deadline;
    if (stream != NULL)
        store_release(&stream->is_asleep, 1);
    front_wait_timed(sleeper.waiter.worker, &sleep.timed_wait);
    if (stream != NULL) {
        store_release(&stream->is_asleep, 0);
        abt_dump_await(stream);
    }
    if (thread != NULL)
        abt_has_waited(thread);
}
