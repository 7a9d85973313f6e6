// SPDX-License-Identifier: Apache-2.0
/* The end of a thread or a tasklet, and the wait for it. */
#include "descriptor.h"
#include "direct.h"

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

/* Until it has ended. True: the caller has waited, and is inside. */
ENTERS_IF_TRUE static inline __attribute__((always_inline)) bool await_end(struct abt_thread *thread) {
    struct abt_waiter waiter, *none = NULL;
    if (load_acquire(&thread->joiner) == ABT_JOIN_ENDED)
        return false;
    abt_wait_begin(&waiter);
    if (__builtin_expect(cas_acq_rel(&thread->joiner, &none, &waiter), 1)) {
        abt_wait_here(&waiter);
        return true;
    }
    abt_wait_not(&waiter);
    if (none != ABT_JOIN_ENDED)
        join_after_another(thread);
    return false;
}

void abt_thread_join(struct abt_thread *thread) {
    if (await_end(thread))
        leave();
}

/* 0, or the error for a thread that may not be joined. */
static inline int may_join(const struct abt_thread *thread) {
    ABT_CHECK(thread->kind != ABT_KIND_MAIN && !(thread->flags & ABT_FLAG_PRIMARY), ABT_ERR_INV_THREAD);
    ABT_CHECK(load_relaxed(&thread->state) != ABT_THREAD_STATE_RUNNING || /* as the caller is, and its host */
                  (thread != abt_self() && thread != abt_host_here()),
              ABT_ERR_INV_THREAD);
    return ABT_SUCCESS;
}

int abt_thread_wait_end(struct abt_thread *thread) {
    int error = may_join(thread);
    if (error == ABT_SUCCESS)
        abt_thread_join(thread);
    return error;
}

ABT_EXPORT int ABT_thread_join(ABT_thread thread) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    return abt_thread_wait_end(abt_thread_of(thread));
}

ABT_EXPORT int ABT_thread_free(ABT_thread *thread) {
    ABT_CHECK_HANDLE(*thread, ABT_ERR_INV_THREAD);
    int error = may_join(abt_thread_of(*thread));
    if (error != ABT_SUCCESS)
        return error;
    if (await_end(abt_thread_of(*thread)))
        abt_descriptor_delete_here(abt_thread_of(*thread));
    else
        abt_descriptor_delete(abt_thread_of(*thread));
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
