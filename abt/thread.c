// SPDX-License-Identifier: Apache-2.0
/* Threads and tasklets: descriptors, making, joining, asking. */
#include <stdlib.h>
#include <string.h>

#include "layer.h"

/* --- descriptors --------------------------------------------------------------------------------------- */

/* What this kernel thread keeps for later use. Without preemption no other thread comes in between. */
enum { CACHE_MAX = 256 };
static __thread struct abt_thread *cache;
static __thread unsigned cached;

static struct abt_thread *descriptor_get(void) {
    enter();
    struct abt_thread *thread = cache;
    if (thread != NULL) {
        cache = thread->next;
        cached--;
    }
    leave();
    return thread != NULL ? thread : malloc(sizeof *thread);
}

static void descriptor_put(struct abt_thread *thread) {
    bool keep = enter() != NULL && cached < CACHE_MAX;
    if (keep) {
        thread->next = cache;
        cache = thread;
        cached++;
    }
    leave();
    if (!keep)
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

struct abt_thread *abt_thread_new(enum abt_kind kind, struct abt_pool *pool, void (*fn)(void *), void *arg,
                                  const struct abt_attr *attr, bool named) {
    struct abt_thread *thread = descriptor_get();
    if (thread == NULL)
        return NULL;
    *thread = (struct abt_thread){.kind = (uint8_t)kind,
                                  .state = ABT_THREAD_STATE_READY,
                                  .flags = (named ? ABT_FLAG_NAMED : 0U) | ABT_FLAG_MIGRATABLE,
                                  .fn = fn,
                                  .arg = arg,
                                  .stack_size = abt.stack_size};
    if (attr != NULL) {
        thread->stack_size = attr->stack_size;
        thread->stack = attr->stack;
        thread->migrated = attr->migrated;
        thread->migrated_arg = attr->migrated_arg;
        if (!attr->migratable)
            thread->flags &= ~(uint32_t)ABT_FLAG_MIGRATABLE;
    }
    if (pool != NULL && abt_thread_associate(thread, pool) != ABT_SUCCESS) {
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
    if (thread->values != NULL)
        abt_values_delete(thread);
    give_unit_back(thread);
    descriptor_put(thread);
}

uint64_t abt_thread_id(struct abt_thread *thread) {
    uint64_t id = load_relaxed(&thread->id);
    if (id != 0)
        return id - 1;
    uint64_t next = fetch_add_relaxed(&abt.next_thread_id, 1) + 1;
    return cas_acq_rel(&thread->id, &id, next) ? next - 1 : id - 1;
}

/* --- the end ------------------------------------------------------------------------------------------- */

/* From the exchange on the descriptor is the joiner's. */
void abt_thread_terminate(struct abt_thread *thread) {
    if (!(load_relaxed(&thread->flags) & ABT_FLAG_NAMED)) {
        abt_thread_delete(thread);
        return;
    }
    store_release(&thread->state, ABT_THREAD_STATE_TERMINATED);
    struct abt_waiter *joiner = exchange_acq_rel(&thread->joiner, ABT_JOIN_ENDED);
    if (joiner != NULL)
        abt_wake(joiner);
}

/* A second one polls. */
static void join_after_another(struct abt_thread *thread) {
    while (load_acquire(&thread->joiner) != ABT_JOIN_ENDED) {
        ABT_thread_yield();
        front_breathe();
    }
}

void abt_thread_join(struct abt_thread *thread) {
    struct abt_waiter waiter, *none = NULL;
    if (load_acquire(&thread->joiner) == ABT_JOIN_ENDED)
        return;
    abt_wait_begin(&waiter);
    if (cas_acq_rel(&thread->joiner, &none, &waiter)) {
        abt_wait(&waiter);
        return;
    }
    abt_wait_not(&waiter);
    if (none != ABT_JOIN_ENDED)
        join_after_another(thread);
}

int abt_thread_wait_end(struct abt_thread *thread) {
    ABT_CHECK(thread->kind != ABT_KIND_MAIN && !(thread->flags & ABT_FLAG_PRIMARY), ABT_ERR_INV_THREAD);
    ABT_CHECK(thread != abt_self() && thread != abt_host_here(), ABT_ERR_INV_THREAD);
    abt_thread_join(thread);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_join(ABT_thread thread) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    return abt_thread_wait_end(abt_thread_of(thread));
}

ABT_EXPORT int ABT_thread_free(ABT_thread *thread) {
    ABT_CHECK_HANDLE(*thread, ABT_ERR_INV_THREAD);
    int error = abt_thread_wait_end(abt_thread_of(*thread));
    if (error != ABT_SUCCESS)
        return error;
    abt_thread_delete(abt_thread_of(*thread));
    *thread = ABT_THREAD_NULL;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_join_many(int num_threads, ABT_thread *thread_list) {
    for (int i = 0; i < num_threads; i++)
        if (!abt_is_null(thread_list[i])) {
            int error = ABT_thread_join(thread_list[i]);
            if (error != ABT_SUCCESS)
                return error;
        }
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_free_many(int num_threads, ABT_thread *thread_list) {
    for (int i = 0; i < num_threads; i++)
        if (!abt_is_null(thread_list[i])) {
            int error = ABT_thread_free(&thread_list[i]);
            if (error != ABT_SUCCESS)
                return error;
        }
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_exit(void) {
    return ABT_self_exit();
}

ABT_EXPORT int ABT_thread_cancel(ABT_thread thread) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    ABT_CHECK(!(abt_thread_of(thread)->flags & ABT_FLAG_PRIMARY), ABT_ERR_INV_THREAD);
    ABT_CHECK(abt_thread_of(thread)->kind != ABT_KIND_MAIN, ABT_ERR_INV_THREAD);
    fetch_or_acq_rel(&abt_thread_of(thread)->request, (uint32_t)ABT_REQUEST_CANCEL);
    return ABT_SUCCESS;
}

/* --- making -------------------------------------------------------------------------------------------- */

static int create(struct abt_pool *pool, enum abt_kind kind, void (*fn)(void *), void *arg,
                  const struct abt_attr *attr, ABT_thread *result) {
    struct abt_thread *thread = abt_thread_new(kind, pool, fn, arg, attr, result != NULL);
    if (__builtin_expect(thread == NULL, 0)) {
        if (result != NULL)
            *result = ABT_THREAD_NULL;
        return pool->type == ABT_POOL_OURS ? ABT_ERR_MEM : ABT_ERR_UNIT;
    }
    if (result != NULL)
        *result = abt_handle(thread);
    abt_pool_push(pool, thread, ABT_POOL_CONTEXT_OP_THREAD_CREATE, false);
    return ABT_SUCCESS;
}

static const struct abt_attr *attr_of(ABT_thread_attr attr) {
    return abt_is_null(attr) ? NULL : (const struct abt_attr *)(const void *)attr;
}

ABT_EXPORT int ABT_thread_create(ABT_pool pool, void (*thread_func)(void *), void *arg, ABT_thread_attr attr,
                                 ABT_thread *newthread) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    return create(abt_pool_of(pool), ABT_KIND_THREAD, thread_func, arg, attr_of(attr), newthread);
}

ABT_EXPORT int ABT_thread_create_on_xstream(ABT_xstream xstream, void (*thread_func)(void *), void *arg,
                                            ABT_thread_attr attr, ABT_thread *newthread) {
    ABT_CHECK_HANDLE(xstream, ABT_ERR_INV_XSTREAM);
    return create(abt_stream_of(xstream)->sched->pools[0], ABT_KIND_THREAD, thread_func, arg, attr_of(attr),
                  newthread);
}

/* A stack of the program's is for one thread. */
ABT_EXPORT int ABT_thread_create_many(int num_threads, ABT_pool *pool_list, void (**thread_func_list)(void *),
                                      void **arg_list, ABT_thread_attr attr, ABT_thread *newthread_list) {
    ABT_CHECK(abt_is_null(attr) || attr_of(attr)->stack == NULL, ABT_ERR_INV_THREAD_ATTR);
    for (int i = 0; i < num_threads; i++) {
        int error =
            ABT_thread_create(pool_list[i], thread_func_list[i], arg_list != NULL ? arg_list[i] : NULL, attr,
                              newthread_list != NULL ? &newthread_list[i] : NULL);
        if (error != ABT_SUCCESS)
            return error;
    }
    return ABT_SUCCESS;
}

/* May the caller give its place to another? 0 or an error; *self is the caller. */
static int may_give_place(struct abt_thread **self) {
    *self = abt_self();
    ABT_CHECK(*self != NULL, ABT_ERR_INV_XSTREAM);
    ABT_CHECK((*self)->kind == ABT_KIND_THREAD, ABT_ERR_INV_THREAD);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_create_to(ABT_pool pool, void (*thread_func)(void *), void *arg,
                                    ABT_thread_attr attr, ABT_thread *newthread) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    struct abt_thread *self;
    int error = may_give_place(&self);
    if (error != ABT_SUCCESS)
        return error;
    struct abt_thread *thread = abt_thread_new(ABT_KIND_THREAD, abt_pool_of(pool), thread_func, arg,
                                               attr_of(attr), newthread != NULL);
    ABT_CHECK(thread != NULL, ABT_ERR_MEM);
    if (newthread != NULL)
        *newthread = abt_handle(thread);
    abt_leave(ABT_LEFT_YIELDING, ABT_POOL_CONTEXT_OP_THREAD_CREATE_TO, thread);
    return ABT_SUCCESS;
}

static int revive(struct abt_pool *pool, struct abt_thread *thread, void (*fn)(void *), void *arg) {
    ABT_CHECK(load_acquire(&thread->state) == ABT_THREAD_STATE_TERMINATED, ABT_ERR_INV_THREAD);
    abt_thread_join(thread); /* it may be about to say so to its joiner */
    int error = abt_thread_associate(thread, pool);
    if (error != ABT_SUCCESS)
        return error;
    thread->fn = fn;
    thread->arg = arg;
    store_relaxed(&thread->joiner, NULL);
    store_relaxed(&thread->request, 0);
    store_relaxed(&thread->state, ABT_THREAD_STATE_READY);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_revive(ABT_pool pool, void (*thread_func)(void *), void *arg, ABT_thread *thread) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    ABT_CHECK_HANDLE(*thread, ABT_ERR_INV_THREAD);
    int error = revive(abt_pool_of(pool), abt_thread_of(*thread), thread_func, arg);
    if (error == ABT_SUCCESS)
        abt_pool_push(abt_pool_of(pool), abt_thread_of(*thread), ABT_POOL_CONTEXT_OP_THREAD_REVIVE, false);
    return error;
}

ABT_EXPORT int ABT_thread_revive_to(ABT_pool pool, void (*thread_func)(void *), void *arg,
                                    ABT_thread *thread) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    struct abt_thread *self;
    int error = may_give_place(&self);
    if (error != ABT_SUCCESS)
        return error;
    ABT_CHECK_HANDLE(*thread, ABT_ERR_INV_THREAD);
    ABT_CHECK(!abt_is_tasklet(abt_thread_of(*thread)), ABT_ERR_INV_THREAD);
    error = revive(abt_pool_of(pool), abt_thread_of(*thread), thread_func, arg);
    if (error == ABT_SUCCESS)
        abt_leave(ABT_LEFT_YIELDING, ABT_POOL_CONTEXT_OP_THREAD_REVIVE_TO, abt_thread_of(*thread));
    return error;
}

/* --- the caller ---------------------------------------------------------------------------------------- */

ABT_EXPORT int ABT_thread_self(ABT_thread *thread) {
    *thread = ABT_THREAD_NULL;
    ABT_CHECK(load_relaxed(&abt.is_on), ABT_ERR_UNINITIALIZED);
    struct abt_thread *self = abt_self();
    ABT_CHECK(self != NULL, ABT_ERR_INV_XSTREAM);
    ABT_CHECK(!abt_is_tasklet(self), ABT_ERR_INV_THREAD);
    *thread = abt_handle(self);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_self_id(ABT_unit_id *id) {
    ABT_thread self;
    int error = ABT_thread_self(&self);
    if (error == ABT_SUCCESS)
        *id = abt_thread_id(abt_thread_of(self));
    return error;
}

/* --- questions ----------------------------------------------------------------------------------------- */

ABT_EXPORT int ABT_thread_get_last_xstream(ABT_thread thread, ABT_xstream *xstream) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    struct abt_stream *stream = abt_thread_of(thread)->last_stream;
    *xstream = stream != NULL ? abt_stream_handle(stream) : ABT_XSTREAM_NULL;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_get_state(ABT_thread thread, ABT_thread_state *state) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    *state = (ABT_thread_state)load_acquire(&abt_thread_of(thread)->state);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_get_last_pool(ABT_thread thread, ABT_pool *pool) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    struct abt_pool *last = abt_thread_of(thread)->pool;
    *pool = last != NULL ? abt_pool_handle(last) : ABT_POOL_NULL;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_get_last_pool_id(ABT_thread thread, int *id) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    const struct abt_pool *last = abt_thread_of(thread)->pool;
    *id = last != NULL ? (int)last->id : -1;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_get_unit(ABT_thread thread, ABT_unit *unit) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    *unit = abt_thread_unit(abt_thread_of(thread));
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_set_associated_pool(ABT_thread thread, ABT_pool pool) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    return abt_thread_associate(abt_thread_of(thread), abt_pool_of(pool));
}

ABT_EXPORT int ABT_thread_is_primary(ABT_thread thread, ABT_bool *is_primary) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    *is_primary = (abt_thread_of(thread)->flags & ABT_FLAG_PRIMARY) != 0;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_is_unnamed(ABT_thread thread, ABT_bool *is_unnamed) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    *is_unnamed = (abt_thread_of(thread)->flags & ABT_FLAG_NAMED) == 0;
    return ABT_SUCCESS;
}

/* All that name none are the same. */
ABT_EXPORT int ABT_thread_equal(ABT_thread thread1, ABT_thread thread2, ABT_bool *result) {
    *result = thread1 == thread2 || (abt_is_null(thread1) && abt_is_null(thread2));
    return ABT_SUCCESS;
}

/* Its end is the top of what it runs on, even where the library gave it more than it asked for. */
static void stack_of(const struct abt_thread *thread, void **low, size_t *size) {
    *size = abt_is_tasklet(thread) || thread->flags & ABT_FLAG_PRIMARY ? 0 : thread->stack_size;
    *low = thread->stack;
    if (thread->stack == NULL && *size != 0 && thread->unit != NULL && thread->unit->stack_top != NULL)
        *low = thread->unit->stack_top - *size;
}

ABT_EXPORT int ABT_thread_get_stack(ABT_thread thread, void **stackaddr, size_t *stacksize) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    void *low;
    size_t size;
    stack_of(abt_thread_of(thread), &low, &size);
    if (stackaddr != NULL)
        *stackaddr = low;
    if (stacksize != NULL)
        *stacksize = size;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_get_stacksize(ABT_thread thread, size_t *stacksize) {
    return ABT_thread_get_stack(thread, NULL, stacksize);
}

ABT_EXPORT int ABT_thread_get_id(ABT_thread thread, ABT_unit_id *thread_id) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    *thread_id = abt_thread_id(abt_thread_of(thread));
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_set_arg(ABT_thread thread, void *arg) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    abt_thread_of(thread)->arg = arg;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_get_arg(ABT_thread thread, void **arg) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    *arg = abt_thread_of(thread)->arg;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_get_thread_func(ABT_thread thread, void (**thread_func)(void *)) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    *thread_func = abt_thread_of(thread)->fn;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_set_specific(ABT_thread thread, ABT_key key, void *value) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    ABT_CHECK_HANDLE(key, ABT_ERR_INV_KEY);
    return abt_values_set(abt_thread_of(thread), key, value);
}

ABT_EXPORT int ABT_thread_get_specific(ABT_thread thread, ABT_key key, void **value) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    ABT_CHECK_HANDLE(key, ABT_ERR_INV_KEY);
    return abt_values_get(abt_thread_of(thread), key, value);
}

/* --- giving way ---------------------------------------------------------------------------------------- */

ABT_EXPORT int ABT_thread_yield(void) {
    struct abt_thread *host = abt_host_here();
    if (__builtin_expect(host == NULL || host->tasklet != NULL || host->kind == ABT_KIND_MAIN, 0)) {
        if (host != NULL && host->tasklet == NULL)
            front_breathe(); /* a main scheduler: nothing else is to run there */
        return ABT_SUCCESS;
    }
    abt_leave(ABT_LEFT_YIELDING, ABT_POOL_CONTEXT_OP_THREAD_YIELD, NULL);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_yield_to(ABT_thread handle) {
    struct abt_thread *self = abt_self();
    if (self == NULL || abt_is_tasklet(self))
        return ABT_SUCCESS; /* as 1.x: nothing to give way with */
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_THREAD);
    struct abt_thread *thread = abt_thread_of(handle);
    ABT_CHECK(thread != self && !abt_is_tasklet(thread) && self->kind == ABT_KIND_THREAD, ABT_ERR_INV_THREAD);
    struct abt_pool *pool = thread->pool;
    ABT_CHECK(pool != NULL, ABT_ERR_INV_THREAD);
    if (pool->type == ABT_POOL_OURS) {
        ABT_CHECK(abt_pool_take(pool, thread), ABT_ERR_POOL);
    } else {
        ABT_CHECK(pool->type == ABT_POOL_OLD && pool->def.old.p_remove != NULL, ABT_ERR_POOL);
        ABT_CHECK(pool->def.old.p_remove(abt_pool_handle(pool), thread->unit_handle) == ABT_SUCCESS,
                  ABT_ERR_POOL);
    }
    abt_leave(ABT_LEFT_YIELDING, ABT_POOL_CONTEXT_OP_THREAD_YIELD_TO, thread);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_resume(ABT_thread handle) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_THREAD);
    struct abt_thread *thread = abt_thread_of(handle);
    ABT_CHECK(!abt_is_tasklet(thread), ABT_ERR_INV_THREAD);
    ABT_CHECK(load_acquire(&thread->state) == ABT_THREAD_STATE_BLOCKED, ABT_ERR_THREAD);
    abt_ready(thread, ABT_POOL_CONTEXT_OP_THREAD_RESUME, true);
    return ABT_SUCCESS;
}

/* --- moving -------------------------------------------------------------------------------------------- */

static int may_migrate(struct abt_thread *thread) {
    ABT_CHECK(thread->flags & ABT_FLAG_MIGRATABLE && !(thread->flags & ABT_FLAG_PRIMARY), ABT_ERR_INV_THREAD);
    ABT_CHECK(thread->kind != ABT_KIND_MAIN, ABT_ERR_INV_THREAD);
    return ABT_SUCCESS;
}

/* Met when it next gives way, or is picked. */
static int migrate(struct abt_thread *thread, struct abt_pool *to) {
    ABT_CHECK(thread->pool != to, ABT_ERR_MIGRATION_TARGET);
    store_release(&thread->migrate_to, to);
    fetch_or_acq_rel(&thread->request, (uint32_t)ABT_REQUEST_MIGRATE);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_migrate_to_pool(ABT_thread thread, ABT_pool pool) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    int error = may_migrate(abt_thread_of(thread));
    return error != ABT_SUCCESS ? error : migrate(abt_thread_of(thread), abt_pool_of(pool));
}

static int migrate_to_sched(struct abt_thread *thread, struct abt_sched *sched) {
    int error = may_migrate(thread);
    if (error != ABT_SUCCESS)
        return error;
    for (int i = 0; i < sched->count; i++)
        ABT_CHECK(sched->pools[i] != thread->pool, ABT_ERR_MIGRATION_TARGET);
    struct abt_pool *to = sched->pools[0];
    if (sched->def.get_migr_pool != NULL) {
        ABT_pool handle = sched->def.get_migr_pool(abt_sched_handle(sched));
        ABT_CHECK(!abt_is_null(handle), ABT_ERR_MIGRATION_NA);
        to = abt_pool_of(handle);
    }
    return migrate(thread, to);
}

ABT_EXPORT int ABT_thread_migrate_to_sched(ABT_thread thread, ABT_sched sched) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    ABT_CHECK_HANDLE(sched, ABT_ERR_INV_SCHED);
    return migrate_to_sched(abt_thread_of(thread), abt_sched_of(sched));
}

ABT_EXPORT int ABT_thread_migrate_to_xstream(ABT_thread thread, ABT_xstream xstream) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    ABT_CHECK_HANDLE(xstream, ABT_ERR_INV_XSTREAM);
    ABT_CHECK(load_acquire(&abt_stream_of(xstream)->state) == ABT_XSTREAM_STATE_RUNNING, ABT_ERR_INV_XSTREAM);
    return migrate_to_sched(abt_thread_of(thread), abt_stream_of(xstream)->sched);
}

/* Another stream than the one that it ran on, if there is one. */
ABT_EXPORT int ABT_thread_migrate(ABT_thread handle) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_THREAD);
    struct abt_thread *thread = abt_thread_of(handle);
    int error = may_migrate(thread);
    if (error != ABT_SUCCESS)
        return error;
    error = ABT_ERR_MIGRATION_NA;
    abt_lock(&abt.lock);
    for (struct abt_stream *stream = abt.streams; stream != NULL && error != ABT_SUCCESS;
         stream = stream->next)
        if (stream != thread->last_stream && load_acquire(&stream->state) == ABT_XSTREAM_STATE_RUNNING &&
            migrate_to_sched(thread, stream->sched) == ABT_SUCCESS)
            error = ABT_SUCCESS;
    abt_unlock(&abt.lock);
    return error;
}

ABT_EXPORT int ABT_thread_set_callback(ABT_thread thread, void (*cb_func)(ABT_thread, void *), void *cb_arg) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    abt_thread_of(thread)->migrated = cb_func;
    abt_thread_of(thread)->migrated_arg = cb_arg;
    return ABT_SUCCESS;
}

/* Of the primary and of main schedulers it says nothing. */
ABT_EXPORT int ABT_thread_set_migratable(ABT_thread handle, ABT_bool migratable) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_THREAD);
    struct abt_thread *thread = abt_thread_of(handle);
    if (thread->kind == ABT_KIND_MAIN || thread->flags & ABT_FLAG_PRIMARY)
        return ABT_SUCCESS;
    if (migratable)
        fetch_or_acq_rel(&thread->flags, (uint32_t)ABT_FLAG_MIGRATABLE);
    else
        fetch_and_acq_rel(&thread->flags, ~(uint32_t)ABT_FLAG_MIGRATABLE);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_is_migratable(ABT_thread thread, ABT_bool *is_migratable) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    *is_migratable = may_migrate(abt_thread_of(thread)) == ABT_SUCCESS;
    return ABT_SUCCESS;
}

/* --- tasklets ------------------------------------------------------------------------------------------ */

ABT_EXPORT int ABT_task_create(ABT_pool pool, void (*task_func)(void *), void *arg, ABT_task *newtask) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    return create(abt_pool_of(pool), ABT_KIND_TASKLET, task_func, arg, NULL, newtask);
}

ABT_EXPORT int ABT_task_create_on_xstream(ABT_xstream xstream, void (*task_func)(void *), void *arg,
                                          ABT_task *newtask) {
    ABT_CHECK_HANDLE(xstream, ABT_ERR_INV_XSTREAM);
    return create(abt_stream_of(xstream)->sched->pools[0], ABT_KIND_TASKLET, task_func, arg, NULL, newtask);
}

ABT_EXPORT int ABT_task_revive(ABT_pool pool, void (*task_func)(void *), void *arg, ABT_task *task) {
    return ABT_thread_revive(pool, task_func, arg, task);
}

ABT_EXPORT int ABT_task_free(ABT_task *task) {
    int error = ABT_thread_free(task);
    if (error == ABT_SUCCESS)
        *task = ABT_TASK_NULL;
    return error;
}

ABT_EXPORT int ABT_task_join(ABT_task task) {
    return ABT_thread_join(task);
}

ABT_EXPORT int ABT_task_cancel(ABT_task task) {
    return ABT_thread_cancel(task);
}

ABT_EXPORT int ABT_task_self(ABT_task *task) {
    *task = ABT_TASK_NULL;
    ABT_CHECK(load_relaxed(&abt.is_on), ABT_ERR_UNINITIALIZED);
    struct abt_thread *self = abt_self();
    ABT_CHECK(self != NULL, ABT_ERR_INV_XSTREAM);
    ABT_CHECK(abt_is_tasklet(self), ABT_ERR_INV_TASK);
    *task = abt_handle(self);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_task_self_id(uint64_t *id) {
    ABT_task self;
    int error = ABT_task_self(&self);
    if (error == ABT_SUCCESS)
        *id = abt_thread_id(abt_thread_of(self));
    return error;
}

ABT_EXPORT int ABT_task_get_xstream(ABT_task task, ABT_xstream *xstream) {
    return ABT_thread_get_last_xstream(task, xstream);
}

ABT_EXPORT int ABT_task_get_state(ABT_task task, ABT_task_state *state) {
    ABT_CHECK_HANDLE(task, ABT_ERR_INV_TASK);
    ABT_CHECK(abt_is_tasklet(abt_thread_of(task)), ABT_ERR_INV_TASK);
    switch (load_acquire(&abt_thread_of(task)->state)) {
    case ABT_THREAD_STATE_READY: *state = ABT_TASK_STATE_READY; break;
    case ABT_THREAD_STATE_TERMINATED: *state = ABT_TASK_STATE_TERMINATED; break;
    default: *state = ABT_TASK_STATE_RUNNING; break;
    }
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_task_get_last_pool(ABT_task task, ABT_pool *pool) {
    return ABT_thread_get_last_pool(task, pool);
}

ABT_EXPORT int ABT_task_get_last_pool_id(ABT_task task, int *id) {
    return ABT_thread_get_last_pool_id(task, id);
}

ABT_EXPORT int ABT_task_set_migratable(ABT_task task, ABT_bool flag) {
    return ABT_thread_set_migratable(task, flag);
}

ABT_EXPORT int ABT_task_is_migratable(ABT_task task, ABT_bool *flag) {
    return ABT_thread_is_migratable(task, flag);
}

ABT_EXPORT int ABT_task_equal(ABT_task task1, ABT_task task2, ABT_bool *result) {
    return ABT_thread_equal(task1, task2, result);
}

ABT_EXPORT int ABT_task_get_id(ABT_task task, uint64_t *task_id) {
    return ABT_thread_get_id(task, task_id);
}

ABT_EXPORT int ABT_task_get_arg(ABT_task task, void **arg) {
    return ABT_thread_get_arg(task, arg);
}

/* --- attributes ---------------------------------------------------------------------------------------- */

static struct abt_attr *attributes(ABT_thread_attr attr) {
    return (struct abt_attr *)(void *)attr;
}

static int attr_new(const struct abt_attr *from, ABT_thread_attr *result) {
    struct abt_attr *attr = malloc(sizeof *attr);
    ABT_CHECK(attr != NULL, ABT_ERR_MEM);
    *attr = *from;
    *result = (ABT_thread_attr)(void *)attr;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_attr_create(ABT_thread_attr *newattr) {
    const struct abt_attr attr = {.stack_size = abt.stack_size, .migratable = ABT_TRUE};
    return attr_new(&attr, newattr);
}

ABT_EXPORT int ABT_thread_get_attr(ABT_thread thread, ABT_thread_attr *attr) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    struct abt_thread *asked = abt_thread_of(thread);
    ABT_CHECK(!abt_is_tasklet(asked), ABT_ERR_INV_THREAD);
    void *low;
    size_t size;
    stack_of(asked, &low, &size);
    const struct abt_attr from = {.stack = low,
                                  .stack_size = size,
                                  .migratable = may_migrate(asked) == ABT_SUCCESS,
                                  .migrated = asked->migrated,
                                  .migrated_arg = asked->migrated_arg};
    return attr_new(&from, attr);
}

ABT_EXPORT int ABT_thread_attr_free(ABT_thread_attr *attr) {
    ABT_CHECK_HANDLE(*attr, ABT_ERR_INV_THREAD_ATTR);
    free(*attr);
    *attr = ABT_THREAD_ATTR_NULL;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_attr_set_stack(ABT_thread_attr attr, void *stackaddr, size_t stacksize) {
    ABT_CHECK_HANDLE(attr, ABT_ERR_INV_THREAD_ATTR);
    ABT_CHECK(((uintptr_t)stackaddr & 7) == 0, ABT_ERR_INV_ARG);
    attributes(attr)->stack = stackaddr;
    attributes(attr)->stack_size = stacksize;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_attr_get_stack(ABT_thread_attr attr, void **stackaddr, size_t *stacksize) {
    ABT_CHECK_HANDLE(attr, ABT_ERR_INV_THREAD_ATTR);
    *stackaddr = attributes(attr)->stack;
    *stacksize = attributes(attr)->stack_size;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_attr_set_stacksize(ABT_thread_attr attr, size_t stacksize) {
    ABT_CHECK_HANDLE(attr, ABT_ERR_INV_THREAD_ATTR);
    attributes(attr)->stack_size = stacksize;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_attr_get_stacksize(ABT_thread_attr attr, size_t *stacksize) {
    ABT_CHECK_HANDLE(attr, ABT_ERR_INV_THREAD_ATTR);
    *stacksize = attributes(attr)->stack_size;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_attr_set_callback(ABT_thread_attr attr, void (*cb_func)(ABT_thread, void *),
                                            void *cb_arg) {
    ABT_CHECK_HANDLE(attr, ABT_ERR_INV_THREAD_ATTR);
    attributes(attr)->migrated = cb_func;
    attributes(attr)->migrated_arg = cb_arg;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_attr_set_migratable(ABT_thread_attr attr, ABT_bool is_migratable) {
    ABT_CHECK_HANDLE(attr, ABT_ERR_INV_THREAD_ATTR);
    attributes(attr)->migratable = is_migratable;
    return ABT_SUCCESS;
}
