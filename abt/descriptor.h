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
/* What this kernel thread keeps is used up. */
struct abt_thread *abt_descriptor_get_slow(void);
/* ... or may not take another, or this one has_more. */
void abt_descriptor_delete_slow(struct abt_thread *thread);

/* Inside. Is there one that this kernel thread keeps? */
static inline bool abt_descriptor_is_at_hand(void) {
    return abt_cache.first != NULL;
}

/* ... Which is the caller's now, with 0 in what most threads do not use. */
static inline struct abt_thread *abt_descriptor_take(void) {
    struct abt_thread *thread = abt_cache.first;
    abt_cache.first = thread->next;
    abt_cache.count--;
    return thread;
}

static inline struct abt_thread *abt_descriptor_get(void) {
    enter();
    struct abt_thread *thread = abt_descriptor_is_at_hand() ? abt_descriptor_take() : NULL;
    leave();
    return __builtin_expect(thread != NULL, 1) ? thread : abt_descriptor_get_slow();
}

/* Of a caller that is inside, in a region that ends with this. */
LEAVES static inline void abt_descriptor_delete_here(struct abt_thread *thread) {
    bool keep = worker_here() != NULL && abt_cache.count < ABT_CACHE_MAX && !abt.preempts &&
                !load_relaxed(&thread->has_more);
    if (__builtin_expect(keep, 1)) {
        thread->next = abt_cache.first;
        abt_cache.first = thread;
        abt_cache.count++;
    }
    leave();
    if (__builtin_expect(!keep, 0))
        abt_descriptor_delete_slow(thread);
}

static inline void abt_descriptor_delete(struct abt_thread *thread) {
    enter();
    abt_descriptor_delete_here(thread);
}

static inline void abt_descriptor_init(struct abt_thread *thread, enum abt_kind kind, struct abt_pool *pool,
                                       void (*fn)(void *), void *arg, bool named) {
    thread->unit = NULL;
    thread->fn = fn;
    thread->arg = arg;
    thread->pool = pool;
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
    abt_descriptor_init(thread, kind, NULL, fn, arg, named);
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
