// SPDX-License-Identifier: Apache-2.0
/* What may be asked of a thread or a tasklet, and set. */
#include "layer.h"

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
    *is_unnamed = (abt_thread_of(thread)->flags & (ABT_FLAG_NAMED | ABT_FLAG_PRIMARY)) != ABT_FLAG_NAMED;
    return ABT_SUCCESS;
}

/* All that name none are the same. */
ABT_EXPORT int ABT_thread_equal(ABT_thread thread1, ABT_thread thread2, ABT_bool *result) {
    *result = thread1 == thread2 || (abt_is_null(thread1) && abt_is_null(thread2));
    return ABT_SUCCESS;
}

/* Its end is the top of what it runs on, even where the library gave it more than it asked for. */
void abt_thread_stack(const struct abt_thread *thread, void **low, size_t *size) {
    *size = abt_is_tasklet(thread) || thread->flags & ABT_FLAG_PRIMARY ? 0 : thread->stack_size;
    *low = thread->stack;
    if (thread->stack == NULL && *size != 0 && thread->unit != NULL && thread->unit->stack_top != NULL)
        *low = thread->unit->stack_top - *size;
}

ABT_EXPORT int ABT_thread_get_stack(ABT_thread thread, void **stackaddr, size_t *stacksize) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    void *low;
    size_t size;
    abt_thread_stack(abt_thread_of(thread), &low, &size);
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
    *arg = abt_thread_of(thread)->kind != ABT_KIND_MAIN ? abt_thread_of(thread)->arg : NULL;
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
