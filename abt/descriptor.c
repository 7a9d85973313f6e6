// SPDX-License-Identifier: Apache-2.0
/* The descriptors of threads and tasklets: their memory, and their unit in a pool of the program's. */
#include <stdlib.h>
#include <string.h>

#include "descriptor.h"
#include "pool.h"

__thread struct abt_cache abt_cache __attribute__((visibility("hidden")));

void abt_thread_cache_flush(void) {
    while (abt_cache.first != NULL) {
        struct abt_thread *thread = abt_cache.first;
        abt_cache.first = thread->next;
        free(thread);
    }
    abt_cache.count = 0;
}

/* --- with preemption -------------------------------------------------------------------------------------- */

/* A thread ends in a region or on its host, where nothing is preempted. If that called free(), it could wait in the kernel for a
 * lock of malloc's whose holder is preempted and needs this stream. So descriptors do not go back to malloc before ABT_finalize: a
 * stream keeps up to SPARE_MAX, and the rest is in `spare`. A creator takes them from there before it calls calloc(). */
enum { SPARE_MAX = 64 };

static struct {
    struct abt_spin lock;
    struct abt_thread *first; /* under lock */
} spare;

/* Of the caller's stream; NULL: none. Inside. */
static struct abt_stream *keeper(const struct worker *worker) {
    return worker != NULL ? abt_stream_on(worker) : NULL;
}

static struct abt_thread *take(struct abt_thread **first) {
    struct abt_thread *thread = *first;
    if (thread != NULL)
        *first = thread->next;
    return thread;
}

static void put(struct abt_thread **first, struct abt_thread *thread) {
    thread->next = *first;
    *first = thread;
}

static struct abt_thread *get_spare(void) {
    struct abt_stream *stream = keeper(enter());
    struct abt_thread *thread = stream != NULL ? take(&stream->spare) : NULL;
    if (thread != NULL) {
        stream->spare_count--;
    } else {
        abt_spin_acquire(&spare.lock);
        thread = take(&spare.first);
        struct abt_thread *more;
        while (stream != NULL && stream->spare_count < SPARE_MAX / 2 && (more = take(&spare.first)) != NULL) {
            put(&stream->spare, more);
            stream->spare_count++;
        }
        abt_spin_release(&spare.lock);
    }
    leave();
    return thread;
}

static void put_spare(struct abt_thread *thread) {
    struct abt_stream *stream = keeper(enter());
    if (stream != NULL && stream->spare_count < SPARE_MAX) {
        put(&stream->spare, thread);
        stream->spare_count++;
    } else {
        abt_spin_acquire(&spare.lock);
        put(&spare.first, thread);
        for (; stream != NULL && stream->spare_count > SPARE_MAX / 2; stream->spare_count--)
            put(&spare.first, take(&stream->spare));
        abt_spin_release(&spare.lock);
    }
    leave();
}

void abt_spare_drop(struct abt_stream *stream) {
    struct abt_thread **first = stream != NULL ? &stream->spare : &spare.first, *thread;
    while ((thread = take(first)) != NULL)
        free(thread);
    if (stream != NULL)
        stream->spare_count = 0;
}

struct abt_thread *abt_descriptor_get_slow(void) {
    struct abt_thread *thread = __builtin_expect(abt.preempts, 0) ? get_spare() : NULL;
    return thread != NULL ? thread : calloc(1, sizeof *thread);
}

/* --- attributes and units --------------------------------------------------------------------------------- */

void abt_thread_set_attributes(struct abt_thread *thread, const struct abt_attr *attr) {
    thread->stack_size = attr->stack_size;
    thread->stack = attr->stack;
    if (attr->migrated != NULL) {
        abt_has_more(thread);
        thread->migrated = attr->migrated;
        thread->migrated_arg = attr->migrated_arg;
    }
    if (attr->preempt != THRUM_PREEMPT_DEFAULT || attr->slice != 0) {
        abt_has_more(thread);
        thread->preempt = attr->preempt;
        thread->slice = attr->slice;
    }
    if (!attr->migratable)
        thread->flags &= ~(uint32_t)ABT_FLAG_MIGRATABLE;
}

/* By the program's function. */
static void free_unit_handle(ABT_unit unit, struct abt_pool *pool) {
    abt_pool_call_begin();
    if (pool->type == ABT_POOL_OLD)
        pool->def.old.u_free(&unit);
    else
        pool->def.free_unit(abt_pool_handle(pool), unit);
    abt_pool_call_end();
}

static void give_unit_back(struct abt_thread *thread) {
    if (thread->unit_pool == NULL)
        return;
    abt_units_remove(thread->unit_handle);
    free_unit_handle(thread->unit_handle, thread->unit_pool);
    thread->unit_pool = NULL;
}

/* A thread that runs is preempted as the new pool says, from here. */
static inline void set_pool(struct abt_thread *thread, struct abt_pool *pool) {
    thread->pool = pool;
    if (__builtin_expect(abt.preempts, 0) && thread->unit != NULL)
        abt_preempt_set(thread);
}

/* By the program's function. */
static ABT_unit make_unit_handle(struct abt_thread *thread, struct abt_pool *pool) {
    ABT_thread handle = abt_handle(thread);
    ABT_unit unit;
    abt_pool_call_begin();
    if (pool->type == ABT_POOL_NEW)
        unit = pool->def.create_unit(abt_pool_handle(pool), handle);
    else if (abt_is_tasklet(thread) && pool->def.old.u_create_from_task != NULL)
        unit = pool->def.old.u_create_from_task(handle);
    else
        unit = pool->def.old.u_create_from_thread(handle);
    abt_pool_call_end();
    return unit;
}

int abt_thread_associate(struct abt_thread *thread, struct abt_pool *pool) {
    if (__builtin_expect(thread->pool == pool, 1))
        return ABT_SUCCESS;
    if (__builtin_expect(pool->type == ABT_POOL_OURS && thread->unit_pool == NULL, 1)) {
        set_pool(thread, pool);
        return ABT_SUCCESS;
    }
    ABT_unit unit = ABT_UNIT_NULL;
    if (pool->type != ABT_POOL_OURS) {
        unit = make_unit_handle(thread, pool);
        if (abt_is_null(unit))
            return ABT_ERR_UNIT;
    }
    if (pool->type != ABT_POOL_OURS && !abt_units_add(unit, thread)) {
        free_unit_handle(unit, pool);
        return ABT_ERR_MEM;
    }
    give_unit_back(thread); /* last: on an error it stays where it is */
    if (pool->type != ABT_POOL_OURS) {
        abt_has_more(thread);
        thread->unit_handle = unit;
        thread->unit_pool = pool;
    }
    set_pool(thread, pool);
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

/* Calls the program's functions. */
static void clear(struct abt_thread *thread) {
    abt_values_delete(thread);
    give_unit_back(thread);
    const size_t more = offsetof(struct abt_thread, values);
    memset((char *)thread + more, 0, sizeof *thread - more);
    store_relaxed(&thread->has_more, false);
}

void abt_descriptor_delete_slow(struct abt_thread *thread) {
    if (load_relaxed(&thread->has_more)) {
        clear(thread);
        abt_descriptor_delete(thread);
    } else if (__builtin_expect(abt.preempts, 0)) {
        put_spare(thread);
    } else {
        free(thread);
    }
}

struct abt_thread *abt_thread_new(enum abt_kind kind, struct abt_pool *pool, void (*fn)(void *), void *arg,
                                  const struct abt_attr *attr, bool named, int *error) {
    return abt_descriptor_new(kind, pool, fn, arg, attr, named, error);
}

void abt_thread_delete(struct abt_thread *thread) {
    abt_descriptor_delete(thread);
}

uint64_t abt_thread_id(struct abt_thread *thread) {
    uint64_t id = load_relaxed(&thread->id);
    if (id != 0)
        return id - 1;
    abt_has_more(thread);
    uint64_t next = fetch_add_relaxed(&abt.next_thread_id, 1) + 1;
    return cas_relaxed(&thread->id, &id, next) ? next - 1 : id - 1;
}
