// SPDX-License-Identifier: Apache-2.0
/* Moving a thread to another pool. */
#include "layer.h"

int abt_thread_may_migrate(const struct abt_thread *thread) {
    ABT_CHECK(thread->flags & ABT_FLAG_MIGRATABLE && !(thread->flags & ABT_FLAG_PRIMARY), ABT_ERR_INV_THREAD);
    ABT_CHECK(thread->kind != ABT_KIND_MAIN, ABT_ERR_INV_THREAD);
    return ABT_SUCCESS;
}

/* Met when it next gives way, or is picked. */
static int migrate(struct abt_thread *thread, struct abt_pool *to) {
    ABT_CHECK(thread->pool != to, ABT_ERR_MIGRATION_TARGET);
    abt_has_more(thread);
    store_release(&thread->migrate_to, to); /* pairs with meet_requests */
    fetch_or_acq_rel(&thread->request, (uint32_t)ABT_REQUEST_MIGRATE);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_migrate_to_pool(ABT_thread thread, ABT_pool pool) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    int error = abt_thread_may_migrate(abt_thread_of(thread));
    return error != ABT_SUCCESS ? error : migrate(abt_thread_of(thread), abt_pool_of(pool));
}

static int migrate_to_sched(struct abt_thread *thread, struct abt_sched *sched) {
    int error = abt_thread_may_migrate(thread);
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
    return migrate_to_sched(abt_thread_of(thread), abt_stream_of(xstream)->sched);
}

/* Another stream than the one that it ran on, if there is one. */
ABT_EXPORT int ABT_thread_migrate(ABT_thread handle) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_THREAD);
    struct abt_thread *thread = abt_thread_of(handle);
    int error = abt_thread_may_migrate(thread);
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
    abt_has_more(abt_thread_of(thread));
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
        fetch_or_relaxed(&thread->flags, (uint32_t)ABT_FLAG_MIGRATABLE);
    else
        fetch_and_relaxed(&thread->flags, ~(uint32_t)ABT_FLAG_MIGRATABLE);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_thread_is_migratable(ABT_thread thread, ABT_bool *is_migratable) {
    ABT_CHECK_HANDLE(thread, ABT_ERR_INV_THREAD);
    *is_migratable = abt_thread_may_migrate(abt_thread_of(thread)) == ABT_SUCCESS;
    return ABT_SUCCESS;
}
