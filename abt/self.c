// SPDX-License-Identifier: Apache-2.0
/* What a thread or a tasklet asks of itself, and how it gives its place away. */
#include "layer.h"

ABT_EXPORT int ABT_self_get_xstream(ABT_xstream *xstream) {
    struct abt_stream *stream = abt_self() != NULL ? abt_stream_here() : NULL;
    ABT_CHECK(stream != NULL, ABT_ERR_INV_XSTREAM);
    *xstream = abt_stream_handle(stream);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_self_get_xstream_rank(int *rank) {
    ABT_CHECK(abt_self() != NULL, ABT_ERR_INV_XSTREAM);
    const struct worker *worker = enter();
    const struct abt_stream *stream = abt_stream_of_current(worker);
    if (stream != NULL)
        *rank = load_relaxed(&stream->rank);
    leave();
    return stream != NULL ? ABT_SUCCESS : ABT_ERR_INV_XSTREAM;
}

ABT_EXPORT int ABT_self_get_thread(ABT_thread *thread) {
    ABT_SELF_OR_RETURN(self);
    *thread = abt_handle(self);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_self_get_thread_id(ABT_unit_id *id) {
    ABT_SELF_OR_RETURN(self);
    *id = abt_thread_id(self);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_self_get_type(ABT_unit_type *type) {
    *type = ABT_UNIT_TYPE_EXT;
    ABT_INITIALIZED_SELF_OR_RETURN(self);
    *type = abt_is_tasklet(self) ? ABT_UNIT_TYPE_TASK : ABT_UNIT_TYPE_THREAD;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_self_is_primary(ABT_bool *is_primary) {
    *is_primary = ABT_FALSE;
    ABT_INITIALIZED_SELF_OR_RETURN(self);
    ABT_CHECK(!abt_is_tasklet(self), ABT_ERR_INV_THREAD);
    *is_primary = (self->flags & ABT_FLAG_PRIMARY) != 0;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_self_on_primary_xstream(ABT_bool *on_primary) {
    *on_primary = ABT_FALSE;
    ABT_INITIALIZED_SELF_OR_RETURN(self);
    *on_primary = abt_stream_here() == abt.primary_stream;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_self_is_unnamed(ABT_bool *is_unnamed) {
    ABT_SELF_OR_RETURN(self);
    return ABT_thread_is_unnamed(abt_handle(self), is_unnamed);
}

ABT_EXPORT int ABT_self_get_last_pool(ABT_pool *pool) {
    ABT_SELF_OR_RETURN(self);
    return ABT_thread_get_last_pool(abt_handle(self), pool);
}

ABT_EXPORT int ABT_self_get_last_pool_id(int *pool_id) {
    *pool_id = -1;
    ABT_INITIALIZED_SELF_OR_RETURN(self);
    return ABT_thread_get_last_pool_id(abt_handle(self), pool_id);
}

ABT_EXPORT int ABT_self_set_associated_pool(ABT_pool pool) {
    ABT_SELF_OR_RETURN(self);
    return ABT_thread_set_associated_pool(abt_handle(self), pool);
}

ABT_EXPORT int ABT_self_get_unit(ABT_unit *unit) {
    ABT_SELF_OR_RETURN(self);
    return ABT_thread_get_unit(abt_handle(self), unit);
}

ABT_EXPORT int ABT_self_set_arg(void *arg) {
    ABT_INITIALIZED_SELF_OR_RETURN(self);
    self->arg = arg;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_self_get_arg(void **arg) {
    *arg = NULL;
    ABT_INITIALIZED_SELF_OR_RETURN(self);
    *arg = self->arg;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_self_get_thread_func(void (**thread_func)(void *)) {
    ABT_SELF_OR_RETURN(self);
    *thread_func = self->fn;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_self_set_specific(ABT_key key, void *value) {
    ABT_CHECK_HANDLE(key, ABT_ERR_INV_KEY);
    ABT_SELF_OR_RETURN(self);
    return ABT_thread_set_specific(abt_handle(self), key, value);
}

ABT_EXPORT int ABT_self_get_specific(ABT_key key, void **value) {
    ABT_CHECK_HANDLE(key, ABT_ERR_INV_KEY);
    ABT_SELF_OR_RETURN(self);
    return ABT_thread_get_specific(abt_handle(self), key, value);
}

/* --- giving way ---------------------------------------------------------------------------------------- */

/* 0: a thread that is a guest, which may leave. */
static int may_leave(struct abt_thread **self) {
    *self = abt_self();
    ABT_CHECK(*self != NULL, ABT_ERR_INV_XSTREAM);
    ABT_CHECK(!abt_is_tasklet(*self), ABT_ERR_INV_THREAD);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_self_yield(void) {
    struct abt_thread *self;
    int error = may_leave(&self);
    return error != ABT_SUCCESS ? error : ABT_thread_yield();
}

/* ... to a thread that may take its place. */
static int may_leave_to(ABT_thread handle, struct abt_thread **self) {
    int error = may_leave(self);
    if (error != ABT_SUCCESS)
        return error;
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_THREAD);
    const struct abt_thread *thread = abt_thread_of(handle);
    ABT_CHECK((*self)->kind != ABT_KIND_MAIN, ABT_ERR_INV_THREAD);
    ABT_CHECK(!abt_is_tasklet(thread) && thread->kind != ABT_KIND_MAIN, ABT_ERR_INV_THREAD);
    return ABT_SUCCESS;
}

/* ... which has been taken out of its pool: where there is an error in the program, it does not run twice. */
static int may_leave_to_ready(ABT_thread handle, struct abt_thread **self) {
    int error = may_leave_to(handle, self);
    if (error != ABT_SUCCESS)
        return error;
    ABT_CHECK(load_acquire(&abt_thread_of(handle)->state) == ABT_THREAD_STATE_READY, ABT_ERR_INV_THREAD);
    return ABT_SUCCESS;
}

/* A thread that waits becomes one that can run, and is the caller's. */
static int take_blocked(ABT_thread handle) {
    struct abt_thread *thread = abt_thread_of(handle);
    ABT_CHECK(load_acquire(&thread->state) == ABT_THREAD_STATE_BLOCKED, ABT_ERR_INV_THREAD);
    store_relaxed(&thread->state, ABT_THREAD_STATE_READY);
    enter();
    abt_pool_add_blocked(thread->pool, -1);
    leave();
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_self_yield_to(ABT_thread thread) {
    struct abt_thread *self;
    int error = may_leave_to_ready(thread, &self);
    if (error != ABT_SUCCESS)
        return error;
    abt_leave(ABT_LEFT_YIELDING, ABT_POOL_CONTEXT_OP_THREAD_YIELD_TO, abt_thread_of(thread));
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_self_resume_yield_to(ABT_thread thread) {
    struct abt_thread *self;
    int error = may_leave_to(thread, &self);
    if (error == ABT_SUCCESS)
        error = take_blocked(thread);
    if (error != ABT_SUCCESS)
        return error;
    abt_leave(ABT_LEFT_YIELDING, ABT_POOL_CONTEXT_OP_THREAD_RESUME_YIELD_TO, abt_thread_of(thread));
    return ABT_SUCCESS;
}

/* A main scheduler waits as its kernel thread's only one: for ABT_thread_resume too. */
ABT_EXPORT int ABT_self_suspend(void) {
    struct abt_thread *self;
    int error = may_leave(&self);
    if (error != ABT_SUCCESS)
        return error;
    ABT_CHECK(self->kind != ABT_KIND_MAIN, ABT_ERR_INV_THREAD);
    abt_leave(ABT_LEFT_SUSPENDED, 0, NULL);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_self_suspend_to(ABT_thread thread) {
    struct abt_thread *self;
    int error = may_leave_to_ready(thread, &self);
    if (error != ABT_SUCCESS)
        return error;
    abt_leave(ABT_LEFT_SUSPENDED, 0, abt_thread_of(thread));
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_self_resume_suspend_to(ABT_thread thread) {
    struct abt_thread *self;
    int error = may_leave_to(thread, &self);
    if (error == ABT_SUCCESS)
        error = take_blocked(thread);
    if (error != ABT_SUCCESS)
        return error;
    abt_leave(ABT_LEFT_SUSPENDED, 0, abt_thread_of(thread));
    return ABT_SUCCESS;
}

/* Nothing is unwound: no destructor, cleanup handler or catch of the caller's runs. */
ABT_EXPORT int ABT_self_exit(void) {
    struct abt_thread *self;
    int error = may_leave(&self);
    if (error != ABT_SUCCESS)
        return error;
    ABT_CHECK(!(self->flags & ABT_FLAG_PRIMARY) && self->kind != ABT_KIND_MAIN, ABT_ERR_INV_THREAD);
    abt_values_delete_early(self);
    abt_leave(ABT_LEFT_EXITED, 0, NULL);
    return ABT_ERR_OTHER; /* not reached */
}

ABT_EXPORT int ABT_self_exit_to(ABT_thread thread) {
    struct abt_thread *self;
    int error = may_leave_to_ready(thread, &self);
    if (error != ABT_SUCCESS)
        return error;
    ABT_CHECK(!(self->flags & ABT_FLAG_PRIMARY), ABT_ERR_INV_THREAD);
    abt_leave(ABT_LEFT_EXITED, 0, abt_thread_of(thread));
    return ABT_ERR_OTHER; /* not reached */
}

ABT_EXPORT int ABT_self_resume_exit_to(ABT_thread thread) {
    struct abt_thread *self;
    int error = may_leave_to(thread, &self);
    if (error == ABT_SUCCESS)
        error = self->flags & ABT_FLAG_PRIMARY ? ABT_ERR_INV_THREAD : take_blocked(thread);
    if (error != ABT_SUCCESS)
        return error;
    abt_leave(ABT_LEFT_EXITED, 0, abt_thread_of(thread));
    return ABT_ERR_OTHER; /* not reached */
}

/* --- running others ------------------------------------------------------------------------------------ */

static int run(struct abt_thread *thread, ABT_pool pool) {
    struct abt_thread *host;
    int error = may_leave(&host);
    if (error == ABT_SUCCESS && load_acquire(&thread->state) != ABT_THREAD_STATE_READY)
        error = ABT_ERR_INV_THREAD; /* the program did not pop it */
    if (error == ABT_SUCCESS && !abt_is_null(pool))
        error = abt_thread_associate(thread, abt_pool_of(pool));
    if (error != ABT_SUCCESS)
        return error;
    struct abt_stream *stream = abt_stream_of_main(host);
    if (stream != NULL) {
        stream->idle_polls = 0;
        abt_stream_events(stream, host);
    }
    abt_run(host, thread);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_self_schedule(ABT_thread thread, ABT_pool pool) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    return run(abt_thread_of(thread), pool);
}

ABT_EXPORT int ABT_xstream_run_unit(ABT_unit unit, ABT_pool pool) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    ABT_SELF_OR_RETURN(self);
    ABT_CHECK_HANDLE(unit, ABT_ERR_INV_UNIT);
    struct abt_thread *thread = abt_unit_thread(unit);
    ABT_CHECK(thread != NULL, ABT_ERR_INV_UNIT);
    return run(thread, pool);
}
