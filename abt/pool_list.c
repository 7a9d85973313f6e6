// SPDX-License-Identifier: Apache-2.0
/* The pools of the library's kinds.
 *
 * Each is a list (first, last, count). A FIFO pool that one stream alone has belongs to that
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
 * Sleepers. See abt_list_is_empty_for_sure.
 *
 * Modelled in tests/model/streampool.pml. */
#include <sched.h>
#include <stdlib.h>

#include "pool.h"

#define OP_NEW                                                                                               \
    (ABT_POOL_CONTEXT_OP_THREAD_CREATE | ABT_POOL_CONTEXT_OP_THREAD_CREATE_TO |                              \
     ABT_POOL_CONTEXT_OP_THREAD_REVIVE | ABT_POOL_CONTEXT_OP_THREAD_REVIVE_TO)

/* --- whose the list is ------------------------------------------------------------------------------ */

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

/* --- what is in it ---------------------------------------------------------------------------------- */

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
ENTERS static inline bool begin(struct abt_pool *pool) {
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

LEAVES static inline void end(struct abt_pool *pool, bool is_own) {
    if (__builtin_expect(is_own, 1))
        abt_pool_end_own(pool);
    else
        abt_spin_release(&pool->lock);
    leave();
}

/* Counts it, and releases the lock under which it was put in. No fence before the load: see abt_list_is_empty_for_sure. */
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

void abt_list_push(struct abt_pool *pool, struct abt_thread *thread, ABT_pool_context context,
                   bool was_blocked) {
    if (__builtin_expect(abt_pool_begin_own(pool, enter()), 1))
        abt_pool_push_own(pool, thread, was_blocked);
    else if (load_relaxed(&pool->owner) != ABT_POOL_SHARED)
        push_inbox(pool, thread, was_blocked);
    else
        push_shared(pool, thread, context, was_blocked);
    leave();
}

struct abt_thread *abt_list_pop(struct abt_pool *pool, ABT_pool_context context) {
    if (abt_list_count(pool) == 0)
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
bool abt_list_is_empty_for_sure(struct abt_pool *pool) {
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

struct abt_thread **abt_list_snapshot(struct abt_pool *pool, size_t *count) {
    size_t room = abt_list_count(pool) + 64;
    struct abt_thread **threads = malloc(room * sizeof *threads);
    *count = 0;
    if (threads == NULL)
        return NULL;
    bool is_own = begin(pool);
    bool newest_first = pool->kind == ABT_POOL_RANDWS; /* as its owner takes them */
    for (struct abt_thread *at = newest_first ? pool->last : pool->first; at != NULL && *count < room;
         at = newest_first ? at->prev : at->next)
        threads[(*count)++] = at;
    end(pool, is_own);
    return threads;
}
