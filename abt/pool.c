// SPDX-License-Identifier: Apache-2.0
/* Pools.
 *
 * A pool of the library's kinds is a list (first, last, count). A FIFO pool that one stream alone has belongs to that
 * stream's worker, its owner: it changes the list without a lock or a read-modify-write.
 *
 * Callers. The owner: any thread that runs on that worker, in a region. Others push into the inbox, under its lock; the
 *   owner appends that to the list before it looks at it, so the order of pushes is kept. Another that wants to change the list
 *   (pop, remove, look) revokes the ownership first; from then on all take the lock. A pool has no second owner after that.
 * Ownership. The owner sets `busy`, and then reads `owner` (between): a compiler barrier. The revoker, under the lock,
 *   sets `owner`, and then reads `busy`: a membarrier between, and waits until it is 0. So either the owner sees that it is none any
 *   more, and takes the lock, or the revoker sees that it is at the list. With the reads first both could be at the list.
 *   busy = 0 is a release: the revoker sees what the owner has done. A stream that ends gives the pool up under the lock.
 * Locks. The inbox's lock is taken last; neither is held while a third is taken, or a function of the program's is called.
 * In a pool. in_pool says in which of the two lists. A pusher writes it under the inbox's lock; it becomes LIST where the
 *   inbox is emptied. One that is found as INBOX is looked at again after that.
 * Counts. A thread is in one of count, inbox.count and blocked at each moment, for a reader that reads blocked first, then
 *   inbox.count, then count: a pusher counts it before it is not blocked any more, and the owner counts it in the list before it is
 *   not in the inbox any more.
 * Sleepers. See abt_pool_is_empty_for_sure.
 *
 * Modelled in tests/model/streampool.pml. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"

#define OP_NEW                                                                                               \
    (ABT_POOL_CONTEXT_OP_THREAD_CREATE | ABT_POOL_CONTEXT_OP_THREAD_CREATE_TO |                              \
     ABT_POOL_CONTEXT_OP_THREAD_REVIVE | ABT_POOL_CONTEXT_OP_THREAD_REVIVE_TO)

/* --- life ---------------------------------------------------------------------------------------------- */

static struct abt_pool *make(bool automatic) {
    struct abt_pool *pool = aligned_alloc(_Alignof(struct abt_pool), sizeof *pool);
    if (pool == NULL)
        return NULL;
    memset(pool, 0, sizeof *pool);
    pool->automatic = automatic;
    pool->owner = ABT_POOL_SHARED;
    pool->id = fetch_add_relaxed(&abt.next_pool_id, 1);
    return pool;
}

int abt_pool_new(ABT_pool_kind kind, ABT_pool_access access, bool automatic, struct abt_pool **result) {
    ABT_CHECK((unsigned)kind <= ABT_POOL_RANDWS, ABT_ERR_INV_POOL_KIND);
    ABT_CHECK((unsigned)access <= ABT_POOL_ACCESS_MPMC, ABT_ERR_INV_POOL_ACCESS);
    struct abt_pool *pool = make(automatic);
    ABT_CHECK(pool != NULL, ABT_ERR_MEM);
    pool->type = ABT_POOL_OURS;
    pool->kind = kind;
    pool->access = access;
    *result = pool;
    return ABT_SUCCESS;
}

void abt_pool_delete(struct abt_pool *pool) {
    if (pool->type == ABT_POOL_OLD && pool->def.old.p_free != NULL)
        pool->def.old.p_free(abt_pool_handle(pool));
    if (pool->type == ABT_POOL_NEW && pool->def.free != NULL)
        pool->def.free(abt_pool_handle(pool));
    free(pool);
}

void abt_pool_retain(struct abt_pool *pool) {
    fetch_add_relaxed(&pool->scheds, 1U);
}

void abt_pool_release(struct abt_pool *pool) {
    if (fetch_sub_release(&pool->scheds, 1U) == 1 && pool->automatic)
        abt_pool_delete(pool);
}

/* --- the library's kinds: whose the list is ------------------------------------------------------------- */

/* The owner is at the list for a few instructions only, but its CPU may be taken. */
static __attribute__((noinline)) void revoke_locked(struct abt_pool *pool) {
    pool->was_shared = true;
    store_relaxed(&pool->owner, ABT_POOL_SHARED);
    front_fence_all();
    for (unsigned i = 1; load_acquire(&pool->busy); i++) {
        arch_relax();
        if (i % 64 == 0)
            sched_yield();
    }
}

void abt_pool_own(struct abt_pool *pool) {
    if (pool->type != ABT_POOL_OURS || pool->kind == ABT_POOL_RANDWS || /* that one is for others, too */
        !front_can_fence_all())
        return;
    struct worker *worker = enter();
    abt_spin_acquire(&pool->lock);
    if (!pool->was_shared && pool->owner == ABT_POOL_SHARED && load_relaxed(&pool->scheds) <= 1)
        store_relaxed(&pool->owner, worker);
    abt_spin_release(&pool->lock);
    leave();
}

void abt_pool_own_no_more(struct abt_pool *pool) {
    const struct worker *worker = enter();
    if (load_relaxed(&pool->owner) == worker) {
        abt_spin_acquire(&pool->lock);
        store_relaxed(&pool->owner, ABT_POOL_SHARED);
        abt_spin_release(&pool->lock);
    }
    leave();
}

/* --- ... and what is in it ------------------------------------------------------------------------------- */

static void add_oldest(struct abt_pool *pool, struct abt_thread *thread) {
    thread->prev = NULL;
    thread->next = pool->first;
    if (pool->first != NULL)
        pool->first->prev = thread;
    else
        pool->last = thread;
    pool->first = thread;
}

static inline void unlink_thread(struct abt_pool *pool, struct abt_thread *thread) {
    if (thread->prev != NULL)
        thread->prev->next = thread->next;
    else
        pool->first = thread->next;
    if (thread->next != NULL)
        thread->next->prev = thread->prev;
    else
        pool->last = thread->prev;
    store_relaxed(&thread->in_pool, (uint8_t)ABT_IN_NONE);
    store_release(&pool->count, pool->count - 1);
}

__attribute__((noinline)) void abt_pool_empty_inbox(struct abt_pool *pool) {
    abt_spin_acquire(&pool->inbox.lock);
    for (struct abt_thread *thread = pool->inbox.first, *next; thread != NULL; thread = next) {
        next = thread->next;
        abt_pool_add_newest(pool, thread);
        abt_pool_is_in_list(pool, thread);
    }
    pool->inbox.first = pool->inbox.last = NULL;
    store_release(&pool->inbox.count, 0);
    abt_spin_release(&pool->inbox.lock);
}

/* From here to `end` the caller is at the list, and in a region. Returns whether it is the owner. */
static inline bool begin(struct abt_pool *pool) {
    bool is_own = abt_pool_begin_own(pool, enter());
    if (__builtin_expect(!is_own, 0)) {
        abt_spin_acquire(&pool->lock);
        if (__builtin_expect(pool->owner != ABT_POOL_SHARED, 0))
            revoke_locked(pool);
    }
    if (__builtin_expect(load_relaxed(&pool->inbox.count) != 0, 0))
        abt_pool_empty_inbox(pool);
    return is_own;
}

static inline void end(struct abt_pool *pool, bool is_own) {
    if (__builtin_expect(is_own, 1))
        abt_pool_end_own(pool);
    else
        abt_spin_release(&pool->lock);
    leave();
}

/* Counts it, and releases the lock under which it was put in. No fence before the load: see abt_pool_is_empty_for_sure. */
static void pushed_under(struct abt_pool *pool, struct abt_spin *lock, bool was_blocked) {
    if (was_blocked)
        fetch_sub_release(&pool->blocked, 1U);
    bool has_sleepers = load_relaxed(&pool->sleepers) != 0;
    abt_spin_release(lock);
    if (__builtin_expect(has_sleepers, 0))
        abt_sleeper_wake(pool);
}

/* From another than the owner, which need not know what is in the pool. */
static void push_inbox(struct abt_pool *pool, struct abt_thread *thread, bool was_blocked) {
    abt_spin_acquire(&pool->inbox.lock);
    thread->next = NULL;
    if (pool->inbox.last != NULL)
        pool->inbox.last->next = thread;
    else
        pool->inbox.first = thread;
    pool->inbox.last = thread;
    store_relaxed(&thread->in_pool, (uint8_t)ABT_IN_INBOX);
    store_release(&pool->inbox.count, pool->inbox.count + 1);
    pushed_under(pool, &pool->inbox.lock, was_blocked);
}

/* RANDWS is for work stealing: its owner takes the newest first, others the oldest; one that gives way goes behind the rest. */
static __attribute__((noinline)) void push_shared(struct abt_pool *pool, struct abt_thread *thread,
                                                  ABT_pool_context context, bool was_blocked) {
    abt_spin_acquire(&pool->lock);
    if (__builtin_expect(pool->owner != ABT_POOL_SHARED, 0)) { /* a new stream has become it just now */
        abt_spin_release(&pool->lock);
        push_inbox(pool, thread, was_blocked);
        return;
    }
    if (load_relaxed(&pool->inbox.count) != 0)
        abt_pool_empty_inbox(pool);
    if (pool->kind == ABT_POOL_RANDWS && !(context & OP_NEW))
        add_oldest(pool, thread);
    else
        abt_pool_add_newest(pool, thread);
    abt_pool_is_in_list(pool, thread);
    pushed_under(pool, &pool->lock, was_blocked);
}

static inline void push_ours(struct abt_pool *pool, struct abt_thread *thread, ABT_pool_context context,
                             bool was_blocked) {
    if (__builtin_expect(abt_pool_begin_own(pool, enter()), 1))
        abt_pool_push_own(pool, thread, was_blocked);
    else if (load_relaxed(&pool->owner) != ABT_POOL_SHARED)
        push_inbox(pool, thread, was_blocked);
    else
        push_shared(pool, thread, context, was_blocked);
    leave();
}

static inline size_t count_ours(const struct abt_pool *pool) {
    size_t count = load_acquire(&pool->inbox.count);
    return count + load_acquire(&pool->count);
}

static inline struct abt_thread *pop_ours(struct abt_pool *pool, ABT_pool_context context) {
    if (count_ours(pool) == 0)
        return NULL;
    bool is_own = begin(pool);
    bool newest = pool->kind == ABT_POOL_RANDWS && !(context & ABT_POOL_CONTEXT_OWNER_SECONDARY);
    struct abt_thread *thread = newest ? pool->last : pool->first;
    if (thread != NULL)
        unlink_thread(pool, thread);
    end(pool, is_own);
    return thread;
}

/* For one that is in the list of sleepers. A push that this does not see comes after it, and sees the sleeper: each push that is not
 * the owner's looks at `sleepers` under the lock, or the inbox's lock, and both are taken here, if the caller is not the owner.
 * The owner's push is the caller's own, or sees that the caller has revoked the ownership. */
bool abt_pool_is_empty_for_sure(struct abt_pool *pool) {
    if (pool->type != ABT_POOL_OURS)
        return abt_pool_is_empty(pool);
    bool is_own = begin(pool);
    abt_pool_empty_inbox(pool);
    bool is_empty = pool->count == 0;
    end(pool, is_own);
    return is_empty;
}

bool abt_pool_take(struct abt_pool *pool, struct abt_thread *thread) {
    bool is_own = begin(pool);
    if (__builtin_expect(load_relaxed(&thread->in_pool) == ABT_IN_INBOX, 0)) /* it has just come there */
        abt_pool_empty_inbox(pool);
    bool is_there = load_relaxed(&thread->in_pool) == ABT_IN_LIST;
    if (is_there)
        unlink_thread(pool, thread);
    end(pool, is_own);
    return is_there;
}

/* Something was pushed into a pool of the program's: pairs with the fence in abt_pools_sleep. Either the sleeper sees the push, or
 * this sees the sleeper. */
static inline void notify(const struct abt_pool *pool) {
    fence_seq_cst();
    if (__builtin_expect(load_relaxed(&pool->sleepers) != 0, 0))
        abt_sleeper_wake(pool);
}

/* --- all kinds ----------------------------------------------------------------------------------------- */

void abt_pool_push(struct abt_pool *pool, struct abt_thread *thread, ABT_pool_context context,
                   bool was_blocked) {
    if (__builtin_expect(pool->type == ABT_POOL_OURS, 1)) {
        push_ours(pool, thread, context, was_blocked);
        return;
    }
    if (pool->type == ABT_POOL_OLD)
        pool->def.old.p_push(abt_pool_handle(pool), thread->unit_handle);
    else
        pool->def.push(abt_pool_handle(pool), thread->unit_handle, context);
    if (was_blocked)
        fetch_sub_release(&pool->blocked, 1U);
    notify(pool);
}

struct abt_thread *abt_pool_pop(struct abt_pool *pool, ABT_pool_context context) {
    if (__builtin_expect(pool->type == ABT_POOL_OURS, 1))
        return pop_ours(pool, context);
    if (pool->type == ABT_POOL_OLD)
        return abt_unit_thread(pool->def.old.p_pop(abt_pool_handle(pool)));
    ABT_thread thread = pool->def.pop(abt_pool_handle(pool), context);
    return abt_is_null(thread) ? NULL : abt_thread_of(thread);
}

bool abt_pool_is_empty(struct abt_pool *pool) {
    switch (pool->type) {
    case ABT_POOL_OURS: return count_ours(pool) == 0;
    case ABT_POOL_OLD: return pool->def.old.p_get_size(abt_pool_handle(pool)) == 0;
    default: return pool->def.is_empty(abt_pool_handle(pool));
    }
}

static size_t ready(struct abt_pool *pool) {
    switch (pool->type) {
    case ABT_POOL_OURS: return count_ours(pool);
    case ABT_POOL_OLD: return pool->def.old.p_get_size(abt_pool_handle(pool));
    default: return pool->def.get_size != NULL ? pool->def.get_size(abt_pool_handle(pool)) : SIZE_MAX;
    }
}

int32_t abt_pool_blocked(const struct abt_pool *pool) {
    uint32_t blocked = load_acquire(&pool->blocked);
    return (int32_t)(blocked + load_acquire(&pool->own_blocked));
}

static size_t not_below_0(int32_t count) {
    return count > 0 ? (size_t)count : 0;
}

size_t abt_pool_size(struct abt_pool *pool) {
    size_t timed = not_below_0(load_acquire(&pool->timed)), count = ready(pool);
    return count == SIZE_MAX ? count : count + timed;
}

size_t abt_pool_total_size(struct abt_pool *pool) {
    size_t blocked = not_below_0(abt_pool_blocked(pool)), count = ready(pool);
    return count == SIZE_MAX ? count : count + blocked;
}

/* --- the interface ------------------------------------------------------------------------------------- */

static bool is_old(ABT_pool_user_def def) {
    return def->u_create_from_thread != NULL;
}

ABT_EXPORT int ABT_pool_create(ABT_pool_user_def def, ABT_pool_config config, ABT_pool *newpool) {
    *newpool = ABT_POOL_NULL;
    ABT_CHECK_HANDLE(def, ABT_ERR_INV_POOL_USER_DEF);
    ABT_bool automatic = ABT_FALSE;
    if (!abt_is_null(config))
        abt_config_get((ABT_sched_config)(void *)config, ABT_pool_config_automatic.key, NULL, &automatic);
    struct abt_pool *pool = make(automatic);
    ABT_CHECK(pool != NULL, ABT_ERR_MEM);
    pool->type = is_old(def) ? ABT_POOL_OLD : ABT_POOL_NEW;
    pool->access = is_old(def) ? def->access : ABT_POOL_ACCESS_MPMC;
    if (is_old(def))
        pool->def.old = *def;
    else
        pool->def = *(struct abt_user_def *)(void *)def;
    ABT_pool_init_fn init = is_old(def) ? pool->def.old.p_init : pool->def.init;
    int error = init != NULL ? init(abt_pool_handle(pool), config) : ABT_SUCCESS;
    if (error != ABT_SUCCESS) {
        free(pool);
        return error;
    }
    *newpool = abt_pool_handle(pool);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_create_basic(ABT_pool_kind kind, ABT_pool_access access, ABT_bool automatic,
                                     ABT_pool *newpool) {
    struct abt_pool *pool;
    int error = abt_pool_new(kind, access, automatic, &pool);
    *newpool = error == ABT_SUCCESS ? abt_pool_handle(pool) : ABT_POOL_NULL;
    return error;
}

ABT_EXPORT int ABT_pool_free(ABT_pool *pool) {
    ABT_CHECK_HANDLE(*pool, ABT_ERR_INV_POOL);
    abt_pool_delete(abt_pool_of(*pool));
    *pool = ABT_POOL_NULL;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_get_access(ABT_pool pool, ABT_pool_access *access) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    *access = abt_pool_of(pool)->access;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_get_id(ABT_pool pool, int *id) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    *id = (int)abt_pool_of(pool)->id;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_set_data(ABT_pool pool, void *data) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    abt_pool_of(pool)->data = data;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_get_data(ABT_pool pool, void **data) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    *data = abt_pool_of(pool)->data;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_is_empty(ABT_pool pool, ABT_bool *is_empty) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    *is_empty = abt_pool_is_empty(abt_pool_of(pool));
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_get_size(ABT_pool pool, size_t *size) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    size_t count = abt_pool_size(abt_pool_of(pool));
    ABT_CHECK(count != SIZE_MAX, ABT_ERR_POOL);
    *size = count;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_get_total_size(ABT_pool pool, size_t *size) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    size_t count = abt_pool_total_size(abt_pool_of(pool));
    ABT_CHECK(count != SIZE_MAX, ABT_ERR_POOL);
    *size = count;
    return ABT_SUCCESS;
}

/* --- taking out ---------------------------------------------------------------------------------------- */

/* A host that polls lets others have the CPU, and timers their turn. */
static struct abt_thread *pop(struct abt_pool *pool, ABT_pool_context context) {
    struct abt_thread *thread = abt_pool_pop(pool, context);
    struct abt_stream *stream = thread == NULL ? abt_stream_here() : NULL;
    if (stream != NULL && stream->main == abt_host_here() && ++stream->idle_polls % 32 == 0)
        front_breathe();
    return thread;
}

static ABT_unit unit_or_null(struct abt_thread *thread) {
    return thread != NULL ? abt_thread_unit(thread) : ABT_UNIT_NULL;
}

static ABT_thread thread_or_null(struct abt_thread *thread) {
    return thread != NULL ? abt_handle(thread) : ABT_THREAD_NULL;
}

ABT_EXPORT int ABT_pool_pop(ABT_pool pool, ABT_unit *unit) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    *unit = unit_or_null(pop(abt_pool_of(pool), ABT_POOL_CONTEXT_OP_POOL_OTHER));
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_pop_thread_ex(ABT_pool pool, ABT_thread *thread, ABT_pool_context pool_ctx) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    *thread = thread_or_null(pop(abt_pool_of(pool), pool_ctx));
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_pop_thread(ABT_pool pool, ABT_thread *thread) {
    return ABT_pool_pop_thread_ex(pool, thread, ABT_POOL_CONTEXT_OP_POOL_OTHER);
}

ABT_EXPORT int ABT_pool_pop_threads_ex(ABT_pool handle, ABT_thread *threads, size_t len, size_t *num,
                                       ABT_pool_context pool_ctx) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_POOL);
    struct abt_pool *pool = abt_pool_of(handle);
    if (pool->type == ABT_POOL_NEW && pool->def.pop_many != NULL) {
        if (len > 0)
            pool->def.pop_many(handle, threads, len, num, pool_ctx);
        else
            *num = 0;
        return ABT_SUCCESS;
    }
    ABT_CHECK(pool->type == ABT_POOL_OURS, ABT_ERR_POOL);
    struct abt_thread *thread;
    for (*num = 0; *num < len && (thread = pop(pool, pool_ctx)) != NULL; ++*num)
        threads[*num] = abt_handle(thread);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_pop_threads(ABT_pool pool, ABT_thread *threads, size_t len, size_t *num) {
    return ABT_pool_pop_threads_ex(pool, threads, len, num, ABT_POOL_CONTEXT_OP_POOL_OTHER);
}

/* Other work for the caller's stream ends the wait too. */
static struct abt_thread *pop_until(struct abt_pool *pool, uint64_t deadline, ABT_pool_context context) {
    struct abt_stream *stream = abt_stream_here();
    if (stream != NULL && stream->main != abt_host_here())
        stream = NULL;
    for (bool has_slept = false;; has_slept = true) {
        struct abt_thread *thread = abt_pool_pop(pool, context);
        if (has_slept)
            abt_pools_pass_on(&pool, 1);
        if (thread != NULL || timer_now() >= deadline || abt_stream_is_called(stream))
            return thread;
        abt_pools_sleep(&pool, 1, deadline, stream);
    }
}

static bool pop_wait(struct abt_pool *pool, double seconds, ABT_pool_context context,
                     struct abt_thread **thread) {
    if (pool->type == ABT_POOL_OURS) {
        *thread = pop_until(pool, abt_deadline_in_seconds(seconds), context);
        return true;
    }
    if (pool->type == ABT_POOL_OLD) {
        if (pool->def.old.p_pop_timedwait == NULL)
            return false;
        *thread =
            abt_unit_thread(pool->def.old.p_pop_timedwait(abt_pool_handle(pool), ABT_get_wtime() + seconds));
        return true;
    }
    if (pool->def.pop_wait == NULL)
        return false;
    ABT_thread handle = pool->def.pop_wait(abt_pool_handle(pool), seconds, context);
    *thread = abt_is_null(handle) ? NULL : abt_thread_of(handle);
    return true;
}

ABT_EXPORT int ABT_pool_pop_wait_thread_ex(ABT_pool pool, ABT_thread *thread, double time_secs,
                                           ABT_pool_context pool_ctx) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    struct abt_thread *found;
    ABT_CHECK(pop_wait(abt_pool_of(pool), time_secs, pool_ctx, &found), ABT_ERR_POOL);
    *thread = thread_or_null(found);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_pop_wait_thread(ABT_pool pool, ABT_thread *thread, double time_secs) {
    return ABT_pool_pop_wait_thread_ex(pool, thread, time_secs, ABT_POOL_CONTEXT_OP_POOL_OTHER);
}

ABT_EXPORT int ABT_pool_pop_wait(ABT_pool pool, ABT_unit *unit, double time_secs) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    struct abt_thread *found;
    ABT_CHECK(pop_wait(abt_pool_of(pool), time_secs, ABT_POOL_CONTEXT_OP_POOL_OTHER, &found), ABT_ERR_POOL);
    *unit = unit_or_null(found);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_pop_timedwait(ABT_pool pool, ABT_unit *unit, double abstime_secs) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    struct abt_pool *from = abt_pool_of(pool);
    ABT_CHECK(from->type != ABT_POOL_NEW, ABT_ERR_POOL);
    struct abt_thread *found;
    ABT_CHECK(pop_wait(from, abstime_secs - ABT_get_wtime(), ABT_POOL_CONTEXT_OP_POOL_OTHER, &found),
              ABT_ERR_POOL);
    *unit = unit_or_null(found);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_remove(ABT_pool handle, ABT_unit unit) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_POOL);
    ABT_CHECK_HANDLE(unit, ABT_ERR_INV_UNIT);
    struct abt_pool *pool = abt_pool_of(handle);
    if (pool->type == ABT_POOL_OURS) {
        struct abt_thread *thread = abt_unit_thread(unit);
        return thread->pool == pool && abt_pool_take(pool, thread) ? ABT_SUCCESS : ABT_ERR_POOL;
    }
    ABT_CHECK(pool->type == ABT_POOL_OLD && pool->def.old.p_remove != NULL, ABT_ERR_POOL);
    return pool->def.old.p_remove(handle, unit);
}

/* --- putting in ---------------------------------------------------------------------------------------- */

static int push(struct abt_pool *pool, struct abt_thread *thread, ABT_pool_context context) {
    int error = abt_thread_associate(thread, pool);
    if (error == ABT_SUCCESS)
        abt_pool_push(pool, thread, context, false);
    return error;
}

ABT_EXPORT int ABT_pool_push(ABT_pool pool, ABT_unit unit) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    ABT_CHECK_HANDLE(unit, ABT_ERR_INV_UNIT);
    return push(abt_pool_of(pool), abt_unit_thread(unit), ABT_POOL_CONTEXT_OP_POOL_OTHER);
}

ABT_EXPORT int ABT_pool_push_thread_ex(ABT_pool pool, ABT_thread thread, ABT_pool_context pool_ctx) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    if (abt_is_null(thread)) /* documented to do nothing */
        return ABT_SUCCESS;
    return push(abt_pool_of(pool), abt_thread_of(thread), pool_ctx);
}

ABT_EXPORT int ABT_pool_push_thread(ABT_pool pool, ABT_thread thread) {
    return ABT_pool_push_thread_ex(pool, thread, ABT_POOL_CONTEXT_OP_POOL_OTHER);
}

static int push_many(ABT_pool handle, const ABT_thread *threads, size_t num, ABT_pool_context context) {
    struct abt_pool *pool = abt_pool_of(handle);
    ABT_unit *units = malloc((num + 1) * sizeof *units);
    ABT_CHECK(units != NULL, ABT_ERR_MEM);
    size_t count = 0;
    int error = ABT_SUCCESS;
    for (size_t i = 0; i < num && error == ABT_SUCCESS; i++) {
        if (abt_is_null(threads[i]))
            continue;
        error = abt_thread_associate(abt_thread_of(threads[i]), pool);
        if (error == ABT_SUCCESS)
            units[count++] = abt_thread_unit(abt_thread_of(threads[i]));
    }
    if (error == ABT_SUCCESS && count > 0)
        pool->def.push_many(handle, units, count, context);
    free(units);
    notify(pool);
    return error;
}

ABT_EXPORT int ABT_pool_push_threads_ex(ABT_pool pool, const ABT_thread *threads, size_t num,
                                        ABT_pool_context pool_ctx) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    if (abt_pool_of(pool)->type == ABT_POOL_NEW && abt_pool_of(pool)->def.push_many != NULL)
        return push_many(pool, threads, num, pool_ctx);
    ABT_CHECK(abt_pool_of(pool)->type == ABT_POOL_OURS, ABT_ERR_POOL);
    int error = ABT_SUCCESS;
    for (size_t i = 0; i < num && error == ABT_SUCCESS; i++)
        error = ABT_pool_push_thread_ex(pool, threads[i], pool_ctx);
    return error;
}

ABT_EXPORT int ABT_pool_push_threads(ABT_pool pool, const ABT_thread *threads, size_t num) {
    return ABT_pool_push_threads_ex(pool, threads, num, ABT_POOL_CONTEXT_OP_POOL_OTHER);
}

/* --- looking ------------------------------------------------------------------------------------------- */

/* What is in it at this moment; NULL without memory. The function is called without the lock. */
static struct abt_thread **snapshot(struct abt_pool *pool, size_t *count) {
    size_t room = count_ours(pool) + 64;
    struct abt_thread **threads = malloc(room * sizeof *threads);
    *count = 0;
    if (threads == NULL)
        return NULL;
    bool is_own = begin(pool);
    for (struct abt_thread *at = pool->first; at != NULL && *count < room; at = at->next)
        threads[(*count)++] = at;
    end(pool, is_own);
    return threads;
}

ABT_EXPORT int ABT_pool_print_all(ABT_pool handle, void *arg, void (*print_fn)(void *, ABT_unit)) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_POOL);
    struct abt_pool *pool = abt_pool_of(handle);
    if (pool->type == ABT_POOL_OLD) {
        ABT_CHECK(pool->def.old.p_print_all != NULL, ABT_ERR_POOL);
        return pool->def.old.p_print_all(handle, arg, print_fn);
    }
    ABT_CHECK(pool->type == ABT_POOL_OURS, ABT_ERR_POOL);
    size_t count;
    struct abt_thread **threads = snapshot(pool, &count);
    ABT_CHECK(threads != NULL, ABT_ERR_MEM);
    for (size_t i = 0; i < count; i++)
        print_fn(arg, abt_thread_unit(threads[i]));
    free(threads);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_print_all_threads(ABT_pool handle, void *arg, void (*print_fn)(void *, ABT_thread)) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_POOL);
    struct abt_pool *pool = abt_pool_of(handle);
    if (pool->type == ABT_POOL_NEW) {
        ABT_CHECK(pool->def.print_all != NULL, ABT_ERR_POOL);
        pool->def.print_all(handle, arg, print_fn);
        return ABT_SUCCESS;
    }
    ABT_CHECK(pool->type == ABT_POOL_OURS, ABT_ERR_POOL);
    size_t count;
    struct abt_thread **threads = snapshot(pool, &count);
    ABT_CHECK(threads != NULL, ABT_ERR_MEM);
    for (size_t i = 0; i < count; i++)
        print_fn(arg, abt_handle(threads[i]));
    free(threads);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_add_sched(ABT_pool handle, ABT_sched sched_handle) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_POOL);
    ABT_CHECK_HANDLE(sched_handle, ABT_ERR_INV_SCHED);
    struct abt_sched *sched = abt_sched_of(sched_handle);
    uint32_t unused = ABT_SCHED_UNUSED;
    ABT_CHECK(cas_acq_rel(&sched->use, &unused, ABT_SCHED_IN_POOL), ABT_ERR_INV_SCHED);
    const struct abt_attr attr = {.stack_size = abt.sched_stack_size, .migratable = ABT_FALSE};
    struct abt_thread *thread =
        abt_thread_new(ABT_KIND_THREAD, abt_pool_of(handle), abt_sched_in_pool, sched, &attr, false);
    if (thread == NULL) {
        store_release(&sched->use, ABT_SCHED_UNUSED);
        return ABT_ERR_MEM;
    }
    abt_has_more(thread);
    thread->sched = sched;
    sched->thread = thread;
    abt_ready(thread, ABT_POOL_CONTEXT_OP_THREAD_CREATE, false);
    return ABT_SUCCESS;
}
