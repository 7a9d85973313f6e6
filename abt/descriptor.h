// SPDX-License-Identifier: Apache-2.0
/* Making and freeing a descriptor, inlined where threads are created and freed. */
#ifndef ABT_DESCRIPTOR_H
#define ABT_DESCRIPTOR_H

#include "layer.h"

/* What this kernel thread keeps for later use, as many as Argobots does. With preemption none: these would be kept by thread control
 * blocks, which change. Streams keep them then (descriptor.c). */
enum { ABT_CACHE_MAX = 4096 };
struct abt_cache {
    struct abt_thread *first;
    unsigned count;
};
extern __thread struct abt_cache abt_cache __attribute__((visibility("hidden")));

void abt_thread_set_attributes(struct abt_thread *thread, const struct abt_attr *attr);
/* What this kernel thread keeps is used up, or may not take another. */
struct abt_thread *abt_descriptor_get_slow(void);
void abt_descriptor_put_slow(struct abt_thread *thread);
/* Of one that has_more. */
void abt_thread_clear(struct abt_thread *thread);

/* With 0 in what most threads do not use. */
static inline struct abt_thread *abt_descriptor_get(void) {
    enter();
    struct abt_thread *thread = abt_cache.first;
    if (__builtin_expect(thread != NULL, 1)) {
        abt_cache.first = thread->next;
        abt_cache.count--;
    }
    leave();
    return __builtin_expect(thread != NULL, 1) ? thread : abt_descriptor_get_slow();
}

static inline void abt_descriptor_put(struct abt_thread *thread) {
    bool keep = enter() != NULL && abt_cache.count < ABT_CACHE_MAX && !abt.preempts;
    if (__builtin_expect(keep, 1)) {
        thread->next = abt_cache.first;
        abt_cache.first = thread;
        abt_cache.count++;
    }
    leave();
    if (__builtin_expect(!keep, 0))
        abt_descriptor_put_slow(thread);
}

static inline void abt_descriptor_delete(struct abt_thread *thread) {
    if (__builtin_expect(load_relaxed(&thread->has_more), 0))
        abt_thread_clear(thread);
    abt_descriptor_put(thread);
}

/* NULL: *error says why. Else that may be written as well. */
static inline __attribute__((always_inline)) struct abt_thread *
abt_descriptor_new(enum abt_kind kind, struct abt_pool *pool, void (*fn)(void *), void *arg,
                   const struct abt_attr *attr, bool named, int *error) {
    struct abt_thread *thread = abt_descriptor_get();
    if (__builtin_expect(thread == NULL, 0)) {
        *error = ABT_ERR_MEM;
        return NULL;
    }
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
    thread->preempt = THRUM_PREEMPT_DEFAULT;
    thread->stack_size = abt.stack_size;
    thread->stack = NULL;
    if (__builtin_expect(attr != NULL, 0))
        abt_thread_set_attributes(thread, attr);
    if (__builtin_expect(pool == NULL, 0))
        return thread;
    if (__builtin_expect(pool->type == ABT_POOL_OURS, 1)) {
        thread->pool = pool;
    } else if ((*error = abt_thread_associate(thread, pool)) != ABT_SUCCESS) {
        abt_descriptor_delete(thread);
        return NULL;
    }
    return thread;
}

#endif
