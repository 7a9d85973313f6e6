// SPDX-License-Identifier: Apache-2.0
/* What the files of pools call of each other, and the owner's side of a stream's own pool, which is on the way of each change
 * of thread. pool_list.c says how it works. */
#ifndef ABT_POOL_H
#define ABT_POOL_H

#include "layer.h"

/* pool.c: without functions yet. NULL without memory. */
struct abt_pool *abt_pool_make(bool automatic);

/* Around a call of the program's functions, but for those that wait, as they may lock: a caller that is preempted meanwhile could keep the host that calls them
 * next waiting in the kernel. Unchecked: it depends on what ABT_init was told. */
INSIDE_UNCHECKED static inline void abt_pool_call_begin(void) {
    if (__builtin_expect(abt.preempts, 0))
        enter();
}
INSIDE_UNCHECKED static inline void abt_pool_call_end(void) {
    if (__builtin_expect(abt.preempts, 0))
        leave();
}

/* Something was pushed into a pool of the program's: pairs with the fence in abt_pools_sleep. Either the sleeper sees the push, or
 * this sees the sleeper. */
static inline void abt_pool_notify(const struct abt_pool *pool) {
    fence_seq_cst();
    if (__builtin_expect(load_relaxed(&pool->sleepers) != 0, 0))
        abt_sleeper_wake(pool);
}

/* --- pools of the library's kinds (pool_list.c) ----------------------------------------------------- */

void abt_list_push(struct abt_pool *pool, struct abt_thread *thread, ABT_pool_context context,
                   bool was_blocked);
struct abt_thread *abt_list_pop(struct abt_pool *pool, ABT_pool_context context);
bool abt_list_is_empty_for_sure(struct abt_pool *pool);
/* What is in it at this moment, to be freed; NULL without memory. The caller does not hold its lock when this returns. */
struct abt_thread **abt_list_snapshot(struct abt_pool *pool, size_t *count);

static inline size_t abt_list_count(const struct abt_pool *pool) {
    size_t count = load_acquire(&pool->inbox.count);
    return count + load_acquire(&pool->count);
}

/* --- the owner -------------------------------------------------------------------------------------- */

/* True: the caller is the owner, and at the list. Inside. */
static inline bool abt_pool_begin_own(struct abt_pool *pool, const struct worker *worker) {
    if (load_relaxed(&pool->owner) != worker)
        return false;
    store_relaxed(&pool->busy, 1);
    fence_compiler(); /* pairs with revoke_locked's front_fence_all */
    if (__builtin_expect(load_relaxed(&pool->owner) == worker, 1))
        return true;
    store_release(&pool->busy, 0);
    return false;
}

static inline void abt_pool_end_own(struct abt_pool *pool) {
    store_release(&pool->busy, 0); /* pairs with revoke_locked's load */
}

/* --- at the list ------------------------------------------------------------------------------------ */

/* What others have pushed goes to its end. */
void abt_pool_empty_inbox(struct abt_pool *pool);

static inline void abt_pool_look_at_inbox(struct abt_pool *pool) {
    if (__builtin_expect(load_relaxed(&pool->inbox.count) != 0, 0))
        abt_pool_empty_inbox(pool);
}

static inline void abt_pool_add_newest(struct abt_pool *pool, struct abt_thread *thread) {
    thread->next = NULL;
    thread->prev = pool->last;
    if (pool->last != NULL)
        pool->last->next = thread;
    else
        pool->first = thread;
    pool->last = thread;
}

static inline void abt_pool_is_in_list(struct abt_pool *pool, struct abt_thread *thread) {
    store_relaxed(&thread->in_pool, (uint8_t)ABT_IN_LIST);
    store_release(&pool->count, pool->count + 1);
}

/* Leaves the list, after abt_pool_begin_own. */
static inline void abt_pool_push_own(struct abt_pool *pool, struct abt_thread *thread, bool was_blocked) {
    abt_pool_look_at_inbox(pool);
    abt_pool_add_newest(pool, thread);
    abt_pool_is_in_list(pool, thread);
    abt_pool_end_own(pool);
    if (was_blocked)
        store_release(&pool->own_blocked, load_relaxed(&pool->own_blocked) - 1);
    if (__builtin_expect(load_relaxed(&pool->sleepers) != 0, 0))
        abt_sleeper_wake(pool);
}

static inline struct abt_thread *abt_pool_take_oldest(struct abt_pool *pool) {
    struct abt_thread *thread = pool->first;
    if (thread == NULL)
        return NULL;
    struct abt_thread *next = thread->next;
    pool->first = next;
    if (next != NULL)
        next->prev = NULL;
    else
        pool->last = NULL;
    store_relaxed(&thread->in_pool, (uint8_t)ABT_IN_NONE);
    store_release(&pool->count, pool->count - 1);
    return thread;
}

/* The oldest, in whose place `thread`, which is ready then, goes to the end. NULL: there is none, and `thread` stays out. As
 * abt_pool_push_own and abt_pool_take_oldest one after the other; leaves the list, after abt_pool_begin_own. */
static inline struct abt_thread *abt_pool_rotate_own(struct abt_pool *pool, struct abt_thread *thread) {
    abt_pool_look_at_inbox(pool);
    struct abt_thread *oldest = pool->first;
    if (__builtin_expect(oldest != NULL, 1)) {
        store_release(&thread->state, ABT_THREAD_STATE_READY);
        abt_pool_add_newest(pool, thread);
        store_relaxed(&thread->in_pool, (uint8_t)ABT_IN_LIST);
        pool->first = oldest->next;
        pool->first->prev = NULL;
        store_relaxed(&oldest->in_pool, (uint8_t)ABT_IN_NONE);
    }
    abt_pool_end_own(pool);
    if (__builtin_expect(load_relaxed(&pool->sleepers) != 0, 0))
        abt_sleeper_wake(pool);
    return oldest;
}

#endif
