// SPDX-License-Identifier: Apache-2.0
/* Tasklets: what their interface has beyond that of threads. */
#include "layer.h"

/* What the interface of threads says of a handle, said of a tasklet's. */
static int of_task(int error) {
    return error == ABT_ERR_INV_THREAD ? ABT_ERR_INV_TASK : error;
}

ABT_EXPORT int ABT_task_create(ABT_pool pool, void (*task_func)(void *), void *arg, ABT_task *newtask) {
    if (newtask != NULL)
        *newtask = ABT_TASK_NULL;
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    return abt_thread_create(abt_pool_of(pool), ABT_KIND_TASKLET, task_func, arg, NULL, newtask);
}

ABT_EXPORT int ABT_task_create_on_xstream(ABT_xstream xstream, void (*task_func)(void *), void *arg,
                                          ABT_task *newtask) {
    if (newtask != NULL)
        *newtask = ABT_TASK_NULL;
    ABT_CHECK_HANDLE(xstream, ABT_ERR_INV_XSTREAM);
    return abt_thread_create(abt_stream_of(xstream)->sched->pools[0], ABT_KIND_TASKLET, task_func, arg, NULL,
                             newtask);
}

ABT_EXPORT int ABT_task_revive(ABT_pool pool, void (*task_func)(void *), void *arg, ABT_task *task) {
    return of_task(ABT_thread_revive(pool, task_func, arg, task));
}

ABT_EXPORT int ABT_task_free(ABT_task *task) {
    int error = of_task(ABT_thread_free(task));
    if (error == ABT_SUCCESS)
        *task = ABT_TASK_NULL;
    return error;
}

ABT_EXPORT int ABT_task_join(ABT_task task) {
    return of_task(ABT_thread_join(task));
}

ABT_EXPORT int ABT_task_cancel(ABT_task task) {
    return of_task(ABT_thread_cancel(task));
}

ABT_EXPORT int ABT_task_self(ABT_task *task) {
    *task = ABT_TASK_NULL;
    ABT_INITIALIZED_SELF_OR_RETURN(self);
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
    return of_task(ABT_thread_get_last_xstream(task, xstream));
}

ABT_EXPORT int ABT_task_get_state(ABT_task task, ABT_task_state *state) {
    ABT_CHECK_HANDLE(task, ABT_ERR_INV_TASK);
    switch (load_acquire(&abt_thread_of(task)->state)) {
    case ABT_THREAD_STATE_READY: *state = ABT_TASK_STATE_READY; break;
    case ABT_THREAD_STATE_TERMINATED: *state = ABT_TASK_STATE_TERMINATED; break;
    default: *state = ABT_TASK_STATE_RUNNING; break;
    }
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_task_get_last_pool(ABT_task task, ABT_pool *pool) {
    return of_task(ABT_thread_get_last_pool(task, pool));
}

ABT_EXPORT int ABT_task_get_last_pool_id(ABT_task task, int *id) {
    return of_task(ABT_thread_get_last_pool_id(task, id));
}

ABT_EXPORT int ABT_task_set_migratable(ABT_task task, ABT_bool flag) {
    return of_task(ABT_thread_set_migratable(task, flag));
}

ABT_EXPORT int ABT_task_is_migratable(ABT_task task, ABT_bool *flag) {
    return of_task(ABT_thread_is_migratable(task, flag));
}

ABT_EXPORT int ABT_task_equal(ABT_task task1, ABT_task task2, ABT_bool *result) {
    return ABT_thread_equal(task1, task2, result);
}

ABT_EXPORT int ABT_task_get_id(ABT_task task, uint64_t *task_id) {
    return of_task(ABT_thread_get_id(task, task_id));
}

ABT_EXPORT int ABT_task_get_arg(ABT_task task, void **arg) {
    return of_task(ABT_thread_get_arg(task, arg));
}
