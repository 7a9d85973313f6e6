// SPDX-License-Identifier: Apache-2.0
/* Pools of all kinds: their life, and what the layer does with them. A pool of the library's kinds is a list (pool_list.c); the
 * others are the program's, whose functions are called without a lock. */
#include <stdlib.h>
#include <string.h>

#include "pool.h"

/* --- life ------------------------------------------------------------------------------------------- */

struct abt_pool *abt_pool_make(bool automatic) {
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
    struct abt_pool *pool = abt_pool_make(automatic);
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
    /* Pairs with those of the others: what they did with it is before its end. */
    if (fetch_sub_acq_rel(&pool->scheds, 1U) == 1 && pool->automatic)
        abt_pool_delete(pool);
}

/* --- what a host or a creator does with one --------------------------------------------------------- */

void abt_pool_push(struct abt_pool *pool, struct abt_thread *thread, ABT_pool_context context,
                   bool was_blocked) {
    if (__builtin_expect(pool->type == ABT_POOL_OURS, 1)) {
        abt_list_push(pool, thread, context, was_blocked);
        return;
    }
    abt_pool_call_begin();
    if (pool->type == ABT_POOL_OLD)
        pool->def.old.p_push(abt_pool_handle(pool), thread->unit_handle);
    else
        pool->def.push(abt_pool_handle(pool), thread->unit_handle, context);
    abt_pool_call_end();
    if (was_blocked)
        fetch_sub_release(&pool->blocked, 1U);
    abt_pool_notify(pool);
}

struct abt_thread *abt_pool_pop(struct abt_pool *pool, ABT_pool_context context) {
    if (__builtin_expect(pool->type == ABT_POOL_OURS, 1))
        return abt_list_pop(pool, context);
    abt_pool_call_begin();
    struct abt_thread *thread;
    if (pool->type == ABT_POOL_OLD) {
        thread = abt_unit_thread(pool->def.old.p_pop(abt_pool_handle(pool)));
    } else {
        ABT_thread handle = pool->def.pop(abt_pool_handle(pool), context);
        thread = abt_is_null(handle) ? NULL : abt_thread_of(handle);
    }
    abt_pool_call_end();
    return thread;
}

bool abt_pool_is_empty(struct abt_pool *pool) {
    if (__builtin_expect(pool->type == ABT_POOL_OURS, 1))
        return abt_list_count(pool) == 0;
    abt_pool_call_begin();
    bool is_empty = pool->type == ABT_POOL_OLD ? pool->def.old.p_get_size(abt_pool_handle(pool)) == 0
                                               : pool->def.is_empty(abt_pool_handle(pool));
    abt_pool_call_end();
    return is_empty;
}

bool abt_pool_is_empty_for_sure(struct abt_pool *pool) {
    return pool->type == ABT_POOL_OURS ? abt_list_is_empty_for_sure(pool) : abt_pool_is_empty(pool);
}

static size_t ready(struct abt_pool *pool) {
    if (pool->type == ABT_POOL_OURS)
        return abt_list_count(pool);
    size_t (*get_size)(ABT_pool) = pool->type == ABT_POOL_OLD ? pool->def.old.p_get_size : pool->def.get_size;
    if (get_size == NULL)
        return SIZE_MAX;
    abt_pool_call_begin();
    size_t size = get_size(abt_pool_handle(pool));
    abt_pool_call_end();
    return size;
}

int32_t abt_pool_blocked(const struct abt_pool *pool) {
    uint32_t blocked = load_acquire(&pool->blocked);
    return (int32_t)(blocked + load_acquire(&pool->own_blocked));
}

static size_t not_below_0(int32_t count) {
    return count > 0 ? (size_t)count : 0;
}

size_t abt_pool_size(struct abt_pool *pool) {
    size_t timed = not_below_0(load_relaxed(&pool->timed)), count = ready(pool);
    return count == SIZE_MAX ? count : count + timed;
}

size_t abt_pool_total_size(struct abt_pool *pool) {
    size_t blocked = not_below_0(abt_pool_blocked(pool)), count = ready(pool);
    return count == SIZE_MAX ? count : count + blocked;
}
