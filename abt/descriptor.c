// SPDX-License-Identifier: Apache-2.0
/* The descriptors of threads and tasklets: their memory, and their unit in a pool of the program's. */
#include <stdlib.h>
#include <string.h>

#include "layer.h"

/* What this kernel thread keeps for later use. Without preemption no other thread comes in between. */
enum { CACHE_MAX = 4096 };
static __thread struct abt_thread *cache;
static __thread unsigned cached;

/* With 0 in what most threads do not use. */
static struct abt_thread *descriptor_get(void) {
    enter();
    struct abt_thread *thread = cache;
    if (__builtin_expect(thread != NULL, 1)) {
        cache = thread->next;
        cached--;
        leave();
        return thread;
    }
    leave();
    return calloc(1, sizeof *thread);
}

static void descriptor_put(struct abt_thread *thread) {
    if (__builtin_expect(load_relaxed(&thread->has_more), 0)) {
        const size_t more = offsetof(struct abt_thread, values);
        memset((char *)thread + more, 0, sizeof *thread - more);
    }
    if (__builtin_expect(enter() != NULL && cached < CACHE_MAX, 1)) {
        thread->next = cache;
        cache = thread;
        cached++;
        leave();
        return;
    }
    leave();
    free(thread);
}

void abt_thread_cache_flush(void) {
    while (cache != NULL) {
        struct abt_thread *thread = cache;
        cache = thread->next;
        free(thread);
    }
    cached = 0;
}

static __attribute__((noinline)) void set_attributes(struct abt_thread *thread, const struct abt_attr *attr) {
    thread->stack_size = attr->stack_size;
    thread->stack = attr->stack;
    if (attr->migrated != NULL) {
        abt_has_more(thread);
        thread->migrated = attr->migrated;
        thread->migrated_arg = attr->migrated_arg;
    }
    if (!attr->migratable)
        thread->flags &= ~(uint32_t)ABT_FLAG_MIGRATABLE;
}

struct abt_thread *abt_thread_new(enum abt_kind kind, struct abt_pool *pool, void (*fn)(void *), void *arg,
                                  const struct abt_attr *attr, bool named) {
    struct abt_thread *thread = descriptor_get();
    if (__builtin_expect(thread == NULL, 0))
        return NULL;
    thread->unit = NULL;
    thread->fn = fn;
    thread->arg = arg;
    thread->pool = NULL;
    thread->last_stream = NULL;
    thread->joiner = NULL;
    thread->state = ABT_THREAD_STATE_READY;
    thread->flags = (named ? ABT_FLAG_NAMED : 0U) | ABT_FLAG_MIGRATABLE;
    thread->request = 0;
    thread->kind = (uint8_t)kind;
    thread->in_pool = ABT_IN_NONE;
    thread->has_more = false;
    thread->stack_size = abt.stack_size;
    thread->stack = NULL;
    if (__builtin_expect(attr != NULL, 0))
        set_attributes(thread, attr);
    if (__builtin_expect(pool == NULL, 0))
        return thread;
    if (__builtin_expect(pool->type == ABT_POOL_OURS, 1)) {
        thread->pool = pool;
    } else if (abt_thread_associate(thread, pool) != ABT_SUCCESS) {
        descriptor_put(thread);
        return NULL;
    }
    return thread;
}

static void give_unit_back(struct abt_thread *thread) {
    struct abt_pool *pool = thread->unit_pool;
    if (pool == NULL)
        return;
    abt_units_remove(thread->unit_handle);
    if (pool->type == ABT_POOL_OLD)
        pool->def.old.u_free(&thread->unit_handle);
    else
        pool->def.free_unit(abt_pool_handle(pool), thread->unit_handle);
    thread->unit_pool = NULL;
}

int abt_thread_associate(struct abt_thread *thread, struct abt_pool *pool) {
    if (__builtin_expect(thread->pool == pool, 1))
        return ABT_SUCCESS;
    if (__builtin_expect(pool->type == ABT_POOL_OURS && thread->unit_pool == NULL, 1)) {
        thread->pool = pool;
        return ABT_SUCCESS;
    }
    ABT_unit unit = ABT_UNIT_NULL;
    if (pool->type != ABT_POOL_OURS) {
        ABT_thread handle = abt_handle(thread);
        if (pool->type == ABT_POOL_NEW)
            unit = pool->def.create_unit(abt_pool_handle(pool), handle);
        else if (abt_is_tasklet(thread) && pool->def.old.u_create_from_task != NULL)
            unit = pool->def.old.u_create_from_task(handle);
        else
            unit = pool->def.old.u_create_from_thread(handle);
        if (abt_is_null(unit))
            return ABT_ERR_UNIT;
    }
    give_unit_back(thread);
    if (pool->type != ABT_POOL_OURS) {
        abt_has_more(thread);
        thread->unit_handle = unit;
        thread->unit_pool = pool;
        abt_units_add(unit, thread);
    }
    thread->pool = pool;
    return ABT_SUCCESS;
}

ABT_unit abt_thread_unit(struct abt_thread *thread) {
    if (thread->unit_pool != NULL)
        return thread->unit_handle;
    return (ABT_unit)(void *)((uintptr_t)thread | 1);
}

void abt_thread_dissociate(struct abt_thread *thread) {
    give_unit_back(thread);
    thread->pool = NULL;
}

void abt_thread_delete(struct abt_thread *thread) {
    if (__builtin_expect(load_relaxed(&thread->has_more), 0)) {
        abt_values_delete(thread);
        give_unit_back(thread);
    }
    descriptor_put(thread);
}

uint64_t abt_thread_id(struct abt_thread *thread) {
    uint64_t id = load_relaxed(&thread->id);
    if (id != 0)
        return id - 1;
    abt_has_more(thread);
    uint64_t next = fetch_add_relaxed(&abt.next_thread_id, 1) + 1;
    return cas_acq_rel(&thread->id, &id, next) ? next - 1 : id - 1;
}
