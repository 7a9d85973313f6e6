// SPDX-License-Identifier: Apache-2.0
/* Creating a thread, giving its place to others, resuming it. */
#include "descriptor.h"
#include "direct.h"

static __attribute__((noinline)) int create_slow(struct abt_pool *pool, enum abt_kind kind,
                                                 void (*fn)(void *), void *arg, const struct abt_attr *attr,
                                                 ABT_thread *result) {
    int error;
    struct abt_thread *thread = abt_thread_new(kind, pool, fn, arg, attr, result != NULL, &error);
    if (result != NULL)
        *result = thread != NULL ? abt_handle(thread) : ABT_THREAD_NULL;
    if (thread == NULL)
        return error;
    abt_pool_push(pool, thread, ABT_POOL_CONTEXT_OP_THREAD_CREATE, false);
    return ABT_SUCCESS;
}

/* One region where the descriptor is at hand and the pool is this stream's own. */
int abt_thread_create(struct abt_pool *pool, enum abt_kind kind, void (*fn)(void *), void *arg,
                      const struct abt_attr *attr, ABT_thread *result) {
    struct worker *worker = enter();
    if (__builtin_expect(!abt_descriptor_is_at_hand() || !abt_pool_begin_own(pool, worker), 0)) {
        leave();
        return create_slow(pool, kind, fn, arg, attr, result);
    }
    struct abt_thread *thread = abt_descriptor_take();
    abt_descriptor_init(thread, kind, pool, fn, arg, result != NULL);
    if (__builtin_expect(attr != NULL, 0))
        abt_thread_set_attributes(thread, attr);
    if (result != NULL)
        *result = abt_handle(thread);
    abt_pool_push_own(pool, thread, false);
    leave();
    return ABT_SUCCESS;
}

static const struct abt_attr *attr_of(ABT_thread_attr attr) {
    return abt_is_null(attr) ? NULL : (const struct abt_attr *)(const void *)attr;
}

/* Returns it from a creating function that did not create. */
static int no_thread(ABT_thread *newthread, int error) {
    if (newthread != NULL)
        *newthread = ABT_THREAD_NULL;
    return error;
}

ABT_EXPORT int ABT_thread_create(ABT_pool pool, void (*thread_func)(void *), void *arg, ABT_thread_attr attr,
                                 ABT_thread *newthread) {
    ABT_CHECK_HANDLE(pool, no_thread(newthread, ABT_ERR_INV_POOL));
    return abt_thread_create(abt_pool_of(pool), ABT_KIND_THREAD, thread_func, arg, attr_of(attr), newthread);
}

ABT_EXPORT int ABT_thread_create_on_xstream(ABT_xstream xstream, void (*thread_func)(void *), void *arg,
                                            ABT_thread_attr attr, ABT_thread *newthread) {
    ABT_CHECK_HANDLE(xstream, no_thread(newthread, ABT_ERR_INV_XSTREAM));
    return abt_thread_create(abt_stream_of(xstream)->sched->pools[0], ABT_KIND_THREAD, thread_func, arg,
                             attr_of(attr), newthread);
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
    struct abt_thread *self;
    int error = may_give_place(&self);
    if (error != ABT_SUCCESS)
        return error;
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    struct abt_thread *thread = abt_thread_new(ABT_KIND_THREAD, abt_pool_of(pool), thread_func, arg,
                                               attr_of(attr), newthread != NULL, &error);
    ABT_CHECK(thread != NULL, error);
    if (newthread != NULL)
        *newthread = abt_handle(thread);
    abt_leave(ABT_LEFT_YIELDING, ABT_POOL_CONTEXT_OP_THREAD_CREATE_TO, thread);
    return ABT_SUCCESS;
}

static int revive(ABT_pool handle, struct abt_thread *thread, void (*fn)(void *), void *arg) {
    ABT_CHECK(load_acquire(&thread->state) == ABT_THREAD_STATE_TERMINATED, ABT_ERR_INV_THREAD);
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_POOL);
    struct abt_pool *pool = abt_pool_of(handle);
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
    ABT_CHECK_HANDLE(*thread, ABT_ERR_INV_THREAD);
    int error = revive(pool, abt_thread_of(*thread), thread_func, arg);
    if (error == ABT_SUCCESS)
        abt_pool_push(abt_pool_of(pool), abt_thread_of(*thread), ABT_POOL_CONTEXT_OP_THREAD_REVIVE, false);
    return error;
}

ABT_EXPORT int ABT_thread_revive_to(ABT_pool pool, void (*thread_func)(void *), void *arg,
                                    ABT_thread *thread) {
    struct abt_thread *self;
    int error = may_give_place(&self);
    if (error != ABT_SUCCESS)
        return error;
    ABT_CHECK_HANDLE(*thread, ABT_ERR_INV_THREAD);
    ABT_CHECK(!abt_is_tasklet(abt_thread_of(*thread)), ABT_ERR_INV_THREAD);
    error = revive(pool, abt_thread_of(*thread), thread_func, arg);
    if (error == ABT_SUCCESS)
        abt_leave(ABT_LEFT_YIELDING, ABT_POOL_CONTEXT_OP_THREAD_REVIVE_TO, abt_thread_of(*thread));
    return error;
}

/* --- the caller ------------------------------------------------------------------------------------------ */

ABT_EXPORT int ABT_thread_self(ABT_thread *thread) {
    *thread = ABT_THREAD_NULL;
    ABT_INITIALIZED_SELF_OR_RETURN(self);
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

/* --- giving way ------------------------------------------------------------------------------------------ */

static __attribute__((noinline)) int yield_slowly(void) {
    struct abt_thread *host = abt_host_here();
    if (host == NULL || host->tasklet != NULL)
        return ABT_SUCCESS;
    if (host->kind == ABT_KIND_MAIN)
        front_breathe(); /* nothing else is to run there */
    else
        abt_leave(ABT_LEFT_YIELDING, ABT_POOL_CONTEXT_OP_THREAD_YIELD, NULL);
    return ABT_SUCCESS;
}

static ARCH_CALLED_BY_NAME uint64_t thread_yield(const void *unused, const void *unused_too,
                                                 const void *place) {
    (void)unused, (void)unused_too;
    struct worker *worker = enter();
    struct abt_thread *self = worker != NULL ? abt_of_unit(worker->current) : NULL;
    unit_leaves_from(place);
    if (__builtin_expect(self != NULL && self->kind == ABT_KIND_THREAD && self->tasklet == NULL, 1) &&
        abt_yield_direct(worker, abt_of_unit(worker->loop), self, ABT_POOL_CONTEXT_OP_THREAD_YIELD, NULL)) {
        bool jumps = !unit_was_left_from(place);
        leave();
        return arch_return(ABT_SUCCESS, jumps);
    }
    leave();
    return arch_return(yield_slowly(), false);
}
ARCH_RETURN_BY_PLACE(ABT_EXPORT int, ABT_thread_yield, (void), thread_yield, NULL, NULL)

ABT_EXPORT int ABT_thread_yield_to(ABT_thread handle) {
    struct abt_thread *self = abt_self();
    if (self == NULL || abt_is_tasklet(self))
        return ABT_SUCCESS; /* as 1.x: nothing to give way with */
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_THREAD);
    struct abt_thread *thread = abt_thread_of(handle);
    ABT_CHECK(thread != self && !abt_is_tasklet(thread) && self->kind == ABT_KIND_THREAD, ABT_ERR_INV_THREAD);
    struct abt_pool *pool = thread->pool;
    bool is_taken = false;
    if (pool != NULL && pool->type == ABT_POOL_OURS) {
        is_taken = abt_pool_take(pool, thread);
    } else if (pool != NULL) {
        const ABT_pool_def *def = &pool->def.old;
        ABT_CHECK(pool->type == ABT_POOL_OLD && def->u_is_in_pool != NULL && def->p_remove != NULL,
                  ABT_ERR_POOL);
        is_taken =
            def->u_is_in_pool(thread->unit_handle) && load_acquire(&thread->state) == ABT_THREAD_STATE_READY;
        int error = is_taken ? def->p_remove(abt_pool_handle(pool), thread->unit_handle) : ABT_SUCCESS;
        ABT_CHECK(error == ABT_SUCCESS, error);
    }
    if (!is_taken) /* it is not ready: as 1.x, the caller keeps its place */
        return ABT_SUCCESS;
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
