// SPDX-License-Identifier: Apache-2.0
/* Schedulers: the library's own, and what those of the program's call. */
#include <stdlib.h>
#include <string.h>

#include "layer.h"

enum { PRIORITIES = 3, POLL_FIRST = 100000, POLL_LAST = 10000000 }; /* ns */

/* --- the library's own --------------------------------------------------------------------------------- */

static uint64_t draw(struct abt_sched *sched) { /* Marsaglia's xorshift64 */
    uint64_t x = sched->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return sched->random = x;
}

static struct abt_thread *pick_first(struct abt_sched *sched) {
    for (int i = 0; i < sched->count; i++) {
        struct abt_thread *thread = abt_pool_pop(sched->order[i], ABT_POOL_CONTEXT_OWNER_PRIMARY);
        if (thread != NULL)
            return thread;
    }
    return NULL;
}

/* Its first pool, then one of the others' that is drawn. */
static struct abt_thread *pick_or_steal(struct abt_sched *sched) {
    struct abt_thread *thread = abt_pool_pop(sched->pools[0], ABT_POOL_CONTEXT_OWNER_PRIMARY);
    if (thread != NULL || sched->count == 1)
        return thread;
    uint64_t others = (uint64_t)sched->count - 1, from = draw(sched) % others;
    for (uint64_t i = 0; i < others && thread == NULL; i++)
        thread = abt_pool_pop(sched->pools[1 + (from + i) % others], ABT_POOL_CONTEXT_OWNER_SECONDARY);
    return thread;
}

struct abt_thread *abt_sched_pick(struct abt_sched *sched) {
    return sched->predef == ABT_SCHED_RANDWS ? pick_or_steal(sched) : pick_first(sched);
}

static bool polls(const struct abt_sched *sched) {
    for (int i = 0; i < sched->count; i++)
        if (sched->pools[i]->type != ABT_POOL_OURS)
            return true;
    return false;
}

/* Spins for a short time first: to sleep and to be woken takes longer. A pool of the program's may have something without a
 * push that the library sees, so it is polled, less and less often. One in a pool ends when its pools are empty, of which no push
 * tells either. */
static void rest(struct abt_sched *sched, uint64_t *pause) {
    struct abt_stream *stream = load_relaxed(&sched->use) == ABT_SCHED_MAIN ? sched->stream : NULL;
    bool is_asked = load_acquire(&sched->request) !=
                    0; /* once: the deadline and whether a request wakes it belong together */
    uint64_t now = timer_now(), until = now + abt.spin;
    while (timer_now() < until)
        for (int spin = 0; spin < 16; spin++) {
            for (int i = 0; i < sched->count; i++)
                if (!abt_pool_is_empty(sched->pools[i]))
                    return;
            arch_relax();
        }
    if (stream != NULL)
        abt_units_drop(stream);
    uint64_t deadline = TIMER_NEVER;
    if (stream == NULL || polls(sched) || is_asked) {
        deadline = now + *pause;
        *pause = *pause * 2 < POLL_LAST ? *pause * 2 : POLL_LAST;
    }
    /* Asked to end, it waits for what is blocked only. */
    abt_pools_sleep(sched->pools, sched->count, deadline, is_asked ? NULL : stream);
}

/* Threads of <thrum/thrum.h> and what timers start are in no pool. No later than the next timer's deadline wants it. */
static void limit_turns(struct abt_thread *host) {
    if (__builtin_expect(front_has_work(), 0)) {
        uint32_t turns = front_look();
        if (turns < host->turns)
            host->turns = turns != 0 ? turns : 1;
    }
}

void abt_sched_look(struct abt_sched *sched, struct abt_thread *host) {
    host->turns = sched->freq;
    limit_turns(host);
    if (load_relaxed(&sched->use) == ABT_SCHED_MAIN)
        abt_stream_events(sched->stream, host);
}

static void choose(struct abt_sched *sched, struct abt_thread *host) {
    uint64_t pause = POLL_FIRST;
    host->turns = sched->freq;
    for (bool has_slept = false;;) {
        limit_turns(host); /* a unit may have begun to wait for a deadline */
        struct abt_thread *thread = abt_sched_pick(sched);
        if (__builtin_expect(has_slept, 0))
            abt_pools_pass_on(sched->pools, sched->count);
        has_slept = false;
        if (thread != NULL) {
            abt_run(host, thread);
            pause = POLL_FIRST;
            if (--host->turns != 0)
                continue;
        }
        abt_sched_look(sched, host);
        if (abt_sched_has_to_stop(sched)) {
            abt_pools_pass_on(sched->pools, sched->count);
            return;
        }
        has_slept = thread == NULL;
        if (has_slept)
            rest(sched, &pause);
        else if (load_relaxed(&sched->use) != ABT_SCHED_MAIN)
            ABT_thread_yield();
    }
}

/* The function of the predefined schedulers. */
static void run(ABT_sched handle) {
    struct abt_sched *sched = abt_sched_of(handle);
    struct abt_thread *host = abt_host_here();
    host->float_control = arch_float_control();
    host->picks = sched->is_plain ? sched : NULL;
    choose(sched, host);
    host->picks = NULL;
}

/* --- life ---------------------------------------------------------------------------------------------- */

/* Of one stream alone, of one consumer, of several. */
static int rank_of_access(const struct abt_pool *pool) {
    return pool->access == ABT_POOL_ACCESS_PRIV ? 0 : pool->access <= ABT_POOL_ACCESS_MPSC ? 1 : 2;
}

/* Private pools come first; those of one rank stay in order. The program sees its own order. */
static void sort_by_access(struct abt_sched *sched) {
    for (int i = 1; i < sched->count; i++)
        for (int j = i; j > 0 && rank_of_access(sched->order[j - 1]) > rank_of_access(sched->order[j]); j--) {
            struct abt_pool *pool = sched->order[j];
            sched->order[j] = sched->order[j - 1];
            sched->order[j - 1] = pool;
        }
}

static void forget(struct abt_sched *sched) {
    for (int i = 0; i < sched->count; i++)
        if (sched->pools[i] != NULL)
            abt_pool_release(sched->pools[i]);
    free(sched->pools);
    free(sched);
}

static int new_sched(int count, const ABT_pool *pools, ABT_pool_kind kind, ABT_sched_config config,
                     bool automatic, struct abt_sched **result) {
    struct abt_sched *sched = calloc(1, sizeof *sched);
    struct abt_pool **own = calloc(2 * (size_t)count + 1, sizeof *own);
    if (sched == NULL || own == NULL) {
        free(sched);
        free(own);
        return ABT_ERR_MEM;
    }
    sched->pools = own;
    sched->order = own + count;
    sched->count = count;
    sched->automatic = automatic;
    sched->freq = abt.event_freq;
    sched->predef = -1;
    sched->random = (uintptr_t)sched | 1;
    for (int i = 0; i < count; i++) {
        int error = ABT_SUCCESS;
        if (pools != NULL && !abt_is_null(pools[i]))
            own[i] = abt_pool_of(pools[i]);
        else
            error = abt_pool_new(kind, ABT_POOL_ACCESS_MPMC, true, &own[i]);
        if (error != ABT_SUCCESS) {
            forget(sched);
            return error;
        }
        abt_pool_retain(own[i]);
    }
    ABT_bool value;
    int freq;
    if (!abt_is_null(config) && abt_config_get(config, ABT_sched_config_automatic.idx, NULL, &value))
        sched->automatic = value != ABT_FALSE;
    if (!abt_is_null(config) && abt_config_get(config, ABT_sched_basic_freq.idx, NULL, &freq) && freq > 0)
        sched->freq = (uint32_t)freq;
    *result = sched;
    return ABT_SUCCESS;
}

int abt_sched_new_basic(int predef, int count, ABT_pool *pools, ABT_sched_config config,
                        struct abt_sched **result) {
    ABT_CHECK(predef >= ABT_SCHED_DEFAULT && predef <= ABT_SCHED_BASIC_WAIT, ABT_ERR_INV_SCHED_PREDEF);
    ABT_CHECK(count >= 0, ABT_ERR_INV_ARG);
    ABT_pool_kind kind = predef == ABT_SCHED_RANDWS       ? ABT_POOL_RANDWS
                         : predef == ABT_SCHED_BASIC_WAIT ? ABT_POOL_FIFO_WAIT
                                                          : ABT_POOL_FIFO;
    if (pools == NULL)
        count = predef == ABT_SCHED_PRIO ? PRIORITIES : 1;
    int error = new_sched(count, pools, kind, config, true, result);
    if (error != ABT_SUCCESS)
        return error;
    (*result)->predef = predef;
    (*result)->def = (ABT_sched_def){.type = ABT_SCHED_TYPE_ULT, .run = run};
    (*result)->is_plain = !polls(*result);
    (*result)->only =
        (*result)->is_plain && count == 1 && predef != ABT_SCHED_RANDWS ? (*result)->pools[0] : NULL;
    memcpy((*result)->order, (*result)->pools, (size_t)count * sizeof *(*result)->order);
    if (predef != ABT_SCHED_PRIO && predef != ABT_SCHED_RANDWS)
        sort_by_access(*result);
    return ABT_SUCCESS;
}

void abt_sched_delete(struct abt_sched *sched) {
    if (sched->def.free != NULL)
        sched->def.free(abt_sched_handle(sched));
    forget(sched);
}

void abt_sched_in_pool(void *arg) {
    struct abt_sched *sched = arg;
    sched->def.run(abt_sched_handle(sched));
    store_release(&sched->use, ABT_SCHED_UNUSED);
    if (sched->automatic)
        abt_sched_delete(sched);
}

ABT_EXPORT int ABT_sched_create(ABT_sched_def *def, int num_pools, ABT_pool *pools, ABT_sched_config config,
                                ABT_sched *newsched) {
    ABT_CHECK(newsched != NULL, ABT_ERR_SCHED);
    *newsched = ABT_SCHED_NULL;
    ABT_CHECK(num_pools >= 0, ABT_ERR_INV_ARG);
    struct abt_sched *sched;
    int error = new_sched(num_pools, pools, ABT_POOL_FIFO, config, false, &sched);
    if (error != ABT_SUCCESS)
        return error;
    sched->def = *def;
    if (def->init != NULL)
        error = def->init(abt_sched_handle(sched), config);
    if (error != ABT_SUCCESS) {
        forget(sched);
        return error;
    }
    *newsched = abt_sched_handle(sched);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_sched_create_basic(ABT_sched_predef predef, int num_pools, ABT_pool *pools,
                                      ABT_sched_config config, ABT_sched *newsched) {
    struct abt_sched *sched;
    *newsched = ABT_SCHED_NULL;
    int error = abt_sched_new_basic((int)predef, num_pools, pools, config, &sched);
    if (error == ABT_SUCCESS)
        *newsched = abt_sched_handle(sched);
    return error;
}

ABT_EXPORT int ABT_sched_free(ABT_sched *sched) {
    ABT_CHECK_HANDLE(*sched, ABT_ERR_INV_SCHED);
    ABT_CHECK(load_acquire(&abt_sched_of(*sched)->use) == ABT_SCHED_UNUSED, ABT_ERR_SCHED);
    abt_sched_delete(abt_sched_of(*sched));
    *sched = ABT_SCHED_NULL;
    return ABT_SUCCESS;
}

/* --- questions ----------------------------------------------------------------------------------------- */

ABT_EXPORT int ABT_sched_set_data(ABT_sched sched, void *data) {
    ABT_CHECK_HANDLE(sched, ABT_ERR_INV_SCHED);
    abt_sched_of(sched)->data = data;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_sched_get_data(ABT_sched sched, void **data) {
    ABT_CHECK_HANDLE(sched, ABT_ERR_INV_SCHED);
    *data = abt_sched_of(sched)->data;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_sched_get_num_pools(ABT_sched sched, int *num_pools) {
    ABT_CHECK_HANDLE(sched, ABT_ERR_INV_SCHED);
    *num_pools = abt_sched_of(sched)->count;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_sched_get_pools(ABT_sched handle, int max_pools, int idx, ABT_pool *pools) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_SCHED);
    ABT_CHECK(max_pools >= 0 && idx >= 0, ABT_ERR_INV_ARG);
    const struct abt_sched *sched = abt_sched_of(handle);
    ABT_CHECK(max_pools <= sched->count - idx, ABT_ERR_SCHED);
    for (int i = 0; i < max_pools; i++)
        pools[i] = abt_pool_handle(sched->pools[idx + i]);
    return ABT_SUCCESS;
}

static int sum(ABT_sched handle, size_t (*size_of)(struct abt_pool *), size_t *size) {
    *size = 0;
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_SCHED);
    const struct abt_sched *sched = abt_sched_of(handle);
    for (int i = 0; i < sched->count; i++) {
        size_t count = size_of(sched->pools[i]);
        ABT_CHECK(count != SIZE_MAX, ABT_ERR_POOL);
        *size += count;
    }
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_sched_get_size(ABT_sched sched, size_t *size) {
    return sum(sched, abt_pool_size, size);
}

ABT_EXPORT int ABT_sched_get_total_size(ABT_sched sched, size_t *size) {
    return sum(sched, abt_pool_total_size, size);
}

/* --- the end ------------------------------------------------------------------------------------------- */

void abt_sched_request(struct abt_sched *sched, enum abt_sched_request request) {
    fetch_or_acq_rel(&sched->request, (uint32_t)request);
    if (sched->stream != NULL)
        abt_stream_wake(sched->stream);
}

ABT_EXPORT int ABT_sched_finish(ABT_sched sched) {
    ABT_CHECK_HANDLE(sched, ABT_ERR_INV_SCHED);
    abt_sched_request(abt_sched_of(sched), ABT_SCHED_FINISH);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_sched_exit(ABT_sched sched) {
    ABT_CHECK_HANDLE(sched, ABT_ERR_INV_SCHED);
    abt_sched_request(abt_sched_of(sched), ABT_SCHED_EXIT);
    return ABT_SUCCESS;
}

/* What waits in a pool that another scheduler has, too, is that one's to run. `blocked` first: a waker pushes a thread before it counts
 * it out. Modelled in tests/model/streamend.pml. */
static bool is_drained(const struct abt_sched *sched) {
    for (int i = 0; i < sched->count; i++) {
        struct abt_pool *pool = sched->pools[i];
        if (load_relaxed(&pool->scheds) <= 1 && abt_pool_blocked(pool) > 0)
            return false;
        if (!abt_pool_is_empty(pool))
            return false;
    }
    return true;
}

bool abt_sched_has_to_stop(struct abt_sched *sched) {
    uint32_t request = load_acquire(&sched->request), use = load_relaxed(&sched->use);
    if (request & ABT_SCHED_EXIT ||
        (use == ABT_SCHED_MAIN && load_acquire(&sched->stream->request) & ABT_STREAM_EXIT))
        return true;
    if (request == 0 && use != ABT_SCHED_IN_POOL)
        return false;
    return is_drained(sched);
}

ABT_EXPORT int ABT_sched_has_to_stop(ABT_sched handle, ABT_bool *stop) {
    *stop = ABT_FALSE;
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_SCHED);
    struct abt_thread *host = abt_self();
    ABT_CHECK(host != NULL, ABT_ERR_INV_XSTREAM);
    struct abt_sched *sched = abt_sched_of(handle);
    if (load_relaxed(&sched->use) == ABT_SCHED_MAIN && sched->thread == host)
        abt_stream_events(sched->stream, host);
    *stop = abt_sched_has_to_stop(sched);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_xstream_check_events(ABT_sched handle) {
    ABT_CHECK(load_relaxed(&abt.is_on), ABT_ERR_UNINITIALIZED);
    struct abt_thread *host = abt_self();
    ABT_CHECK(host != NULL, ABT_ERR_INV_XSTREAM);
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_SCHED);
    struct abt_sched *sched = abt_sched_of(handle);
    ABT_CHECK(sched->thread == host, ABT_ERR_INV_THREAD);
    if (load_relaxed(&sched->use) == ABT_SCHED_MAIN)
        abt_stream_events(sched->stream, host);
    return ABT_SUCCESS;
}
