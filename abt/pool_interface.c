// SPDX-License-Identifier: Apache-2.0
/* The interface's functions of pools. */
#include <stdlib.h>

#include "pool.h"

/* --- life and questions ----------------------------------------------------------------------------- */

static bool is_old(ABT_pool_user_def def) {
    return def->u_create_from_thread != NULL;
}

ABT_EXPORT int ABT_pool_create(ABT_pool_user_def def, ABT_pool_config config, ABT_pool *newpool) {
    *newpool = ABT_POOL_NULL;
    ABT_CHECK_HANDLE(def, ABT_ERR_INV_POOL_USER_DEF);
    ABT_bool automatic = ABT_FALSE;
    if (!abt_is_null(config))
        abt_config_get((ABT_sched_config)(void *)config, ABT_pool_config_automatic.key, NULL, &automatic);
    struct abt_pool *pool = abt_pool_make(automatic);
    ABT_CHECK(pool != NULL, ABT_ERR_MEM);
    pool->type = is_old(def) ? ABT_POOL_OLD : ABT_POOL_NEW;
    pool->access = is_old(def) ? def->access : ABT_POOL_ACCESS_MPMC;
    if (is_old(def))
        pool->def.old = *def;
    else
        pool->def = *(struct abt_user_def *)(void *)def;
    ABT_pool_init_fn init = is_old(def) ? pool->def.old.p_init : pool->def.init;
    int error = init != NULL ? init(abt_pool_handle(pool), config) : ABT_SUCCESS;
    if (error != ABT_SUCCESS) {
        free(pool);
        return error;
    }
    *newpool = abt_pool_handle(pool);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_create_basic(ABT_pool_kind kind, ABT_pool_access access, ABT_bool automatic,
                                     ABT_pool *newpool) {
    struct abt_pool *pool;
    int error = abt_pool_new(kind, access, automatic, &pool);
    *newpool = error == ABT_SUCCESS ? abt_pool_handle(pool) : ABT_POOL_NULL;
    return error;
}

ABT_EXPORT int ABT_pool_free(ABT_pool *pool) {
    ABT_CHECK_HANDLE(*pool, ABT_ERR_INV_POOL);
    abt_pool_delete(abt_pool_of(*pool));
    *pool = ABT_POOL_NULL;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_get_access(ABT_pool pool, ABT_pool_access *access) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    *access = abt_pool_of(pool)->access;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_get_id(ABT_pool pool, int *id) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    *id = (int)abt_pool_of(pool)->id;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_set_data(ABT_pool pool, void *data) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    abt_pool_of(pool)->data = data;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_get_data(ABT_pool pool, void **data) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    *data = abt_pool_of(pool)->data;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_is_empty(ABT_pool pool, ABT_bool *is_empty) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    *is_empty = abt_pool_is_empty(abt_pool_of(pool));
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_get_size(ABT_pool pool, size_t *size) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    size_t count = abt_pool_size(abt_pool_of(pool));
    ABT_CHECK(count != SIZE_MAX, ABT_ERR_POOL);
    *size = count;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_get_total_size(ABT_pool pool, size_t *size) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    size_t count = abt_pool_total_size(abt_pool_of(pool));
    ABT_CHECK(count != SIZE_MAX, ABT_ERR_POOL);
    *size = count;
    return ABT_SUCCESS;
}

/* --- taking out ------------------------------------------------------------------------------------- */

/* A host that polls lets others have the CPU, and timers their turn. */
static struct abt_thread *pop(struct abt_pool *pool, ABT_pool_context context) {
    struct abt_thread *thread = abt_pool_pop(pool, context);
    struct abt_stream *stream = thread == NULL ? abt_stream_of_main(abt_host_here()) : NULL;
    if (stream != NULL && ++stream->idle_polls % 32 == 0)
        front_breathe();
    return thread;
}

static ABT_unit unit_or_null(struct abt_thread *thread) {
    return thread != NULL ? abt_thread_unit(thread) : ABT_UNIT_NULL;
}

static ABT_thread thread_or_null(struct abt_thread *thread) {
    return thread != NULL ? abt_handle(thread) : ABT_THREAD_NULL;
}

ABT_EXPORT int ABT_pool_pop(ABT_pool pool, ABT_unit *unit) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    *unit = unit_or_null(pop(abt_pool_of(pool), ABT_POOL_CONTEXT_OP_POOL_OTHER));
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_pop_thread_ex(ABT_pool pool, ABT_thread *thread, ABT_pool_context pool_ctx) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    *thread = thread_or_null(pop(abt_pool_of(pool), pool_ctx));
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_pop_thread(ABT_pool pool, ABT_thread *thread) {
    return ABT_pool_pop_thread_ex(pool, thread, ABT_POOL_CONTEXT_OP_POOL_OTHER);
}

ABT_EXPORT int ABT_pool_pop_threads_ex(ABT_pool handle, ABT_thread *threads, size_t len, size_t *num,
                                       ABT_pool_context pool_ctx) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_POOL);
    struct abt_pool *pool = abt_pool_of(handle);
    if (pool->type == ABT_POOL_NEW && pool->def.pop_many != NULL) {
        *num = 0;
        if (len == 0)
            return ABT_SUCCESS;
        abt_pool_call_begin();
        pool->def.pop_many(handle, threads, len, num, pool_ctx);
        abt_pool_call_end();
        return ABT_SUCCESS;
    }
    ABT_CHECK(pool->type != ABT_POOL_NEW, ABT_ERR_POOL);
    struct abt_thread *thread;
    for (*num = 0; *num < len && (thread = pop(pool, pool_ctx)) != NULL; ++*num)
        threads[*num] = abt_handle(thread);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_pop_threads(ABT_pool pool, ABT_thread *threads, size_t len, size_t *num) {
    return ABT_pool_pop_threads_ex(pool, threads, len, num, ABT_POOL_CONTEXT_OP_POOL_OTHER);
}

/* Other work for the caller's stream ends the wait too. */
static struct abt_thread *pop_until(struct abt_pool *pool, uint64_t deadline, ABT_pool_context context) {
    struct abt_stream *stream = abt_stream_of_main(abt_host_here());
    for (bool has_slept = false;; has_slept = true) {
        struct abt_thread *thread = abt_pool_pop(pool, context);
        if (has_slept)
            abt_pools_pass_on(&pool, 1);
        if (thread != NULL || timer_now() >= deadline || abt_stream_is_called(stream))
            return thread;
        abt_pools_sleep(&pool, 1, deadline, stream);
    }
}

static bool pop_wait(struct abt_pool *pool, double seconds, ABT_pool_context context,
                     struct abt_thread **thread) {
    if (pool->type == ABT_POOL_OURS) {
        *thread = pop_until(pool, abt_deadline_in_seconds(seconds), context);
        return true;
    }
    if (pool->type != ABT_POOL_NEW || pool->def.pop_wait == NULL) /* of the older kind it is pop_timedwait */
        return false;
    ABT_thread handle = pool->def.pop_wait(abt_pool_handle(pool), seconds, context);
    *thread = abt_is_null(handle) ? NULL : abt_thread_of(handle);
    return true;
}

ABT_EXPORT int ABT_pool_pop_wait_thread_ex(ABT_pool pool, ABT_thread *thread, double time_secs,
                                           ABT_pool_context pool_ctx) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    struct abt_thread *found;
    ABT_CHECK(pop_wait(abt_pool_of(pool), time_secs, pool_ctx, &found), ABT_ERR_POOL);
    *thread = thread_or_null(found);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_pop_wait_thread(ABT_pool pool, ABT_thread *thread, double time_secs) {
    return ABT_pool_pop_wait_thread_ex(pool, thread, time_secs, ABT_POOL_CONTEXT_OP_POOL_OTHER);
}

ABT_EXPORT int ABT_pool_pop_wait(ABT_pool pool, ABT_unit *unit, double time_secs) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    struct abt_thread *found;
    ABT_CHECK(pop_wait(abt_pool_of(pool), time_secs, ABT_POOL_CONTEXT_OP_POOL_OTHER, &found), ABT_ERR_POOL);
    *unit = unit_or_null(found);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_pop_timedwait(ABT_pool pool, ABT_unit *unit, double abstime_secs) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    struct abt_pool *from = abt_pool_of(pool);
    struct abt_thread *found;
    if (from->type == ABT_POOL_OURS) {
        found = pop_until(from, abt_deadline_real_seconds(abstime_secs), ABT_POOL_CONTEXT_OP_POOL_OTHER);
    } else {
        ABT_CHECK(from->type == ABT_POOL_OLD && from->def.old.p_pop_timedwait != NULL, ABT_ERR_POOL);
        found = abt_unit_thread(from->def.old.p_pop_timedwait(pool, abstime_secs));
    }
    *unit = unit_or_null(found);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_remove(ABT_pool handle, ABT_unit unit) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_POOL);
    ABT_CHECK_HANDLE(unit, ABT_ERR_INV_UNIT);
    struct abt_pool *pool = abt_pool_of(handle);
    if (pool->type == ABT_POOL_OURS) {
        struct abt_thread *thread = abt_unit_thread(unit);
        return thread->pool == pool && abt_pool_take(pool, thread) ? ABT_SUCCESS : ABT_ERR_POOL;
    }
    ABT_CHECK(pool->type == ABT_POOL_OLD && pool->def.old.p_remove != NULL, ABT_ERR_POOL);
    abt_pool_call_begin();
    int error = pool->def.old.p_remove(handle, unit);
    abt_pool_call_end();
    return error;
}

/* --- putting in ------------------------------------------------------------------------------------- */

static int push(struct abt_pool *pool, struct abt_thread *thread, ABT_pool_context context) {
    int error = abt_thread_associate(thread, pool);
    if (error == ABT_SUCCESS)
        abt_pool_push(pool, thread, context, false);
    return error;
}

ABT_EXPORT int ABT_pool_push(ABT_pool pool, ABT_unit unit) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    ABT_CHECK_HANDLE(unit, ABT_ERR_INV_UNIT);
    return push(abt_pool_of(pool), abt_unit_thread(unit), ABT_POOL_CONTEXT_OP_POOL_OTHER);
}

ABT_EXPORT int ABT_pool_push_thread_ex(ABT_pool pool, ABT_thread thread, ABT_pool_context pool_ctx) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    if (abt_is_null(thread)) /* documented to do nothing */
        return ABT_SUCCESS;
    return push(abt_pool_of(pool), abt_thread_of(thread), pool_ctx);
}

ABT_EXPORT int ABT_pool_push_thread(ABT_pool pool, ABT_thread thread) {
    return ABT_pool_push_thread_ex(pool, thread, ABT_POOL_CONTEXT_OP_POOL_OTHER);
}

static int push_many(ABT_pool handle, const ABT_thread *threads, size_t num, ABT_pool_context context) {
    struct abt_pool *pool = abt_pool_of(handle);
    ABT_unit *units = malloc((num + 1) * sizeof *units);
    ABT_CHECK(units != NULL, ABT_ERR_MEM);
    size_t count = 0;
    int error = ABT_SUCCESS;
    for (size_t i = 0; i < num && error == ABT_SUCCESS; i++) {
        if (abt_is_null(threads[i]))
            continue;
        error = abt_thread_associate(abt_thread_of(threads[i]), pool);
        if (error == ABT_SUCCESS)
            units[count++] = abt_thread_unit(abt_thread_of(threads[i]));
    }
    if (error == ABT_SUCCESS && count > 0) {
        abt_pool_call_begin();
        pool->def.push_many(handle, units, count, context);
        abt_pool_call_end();
    }
    free(units);
    abt_pool_notify(pool);
    return error;
}

ABT_EXPORT int ABT_pool_push_threads_ex(ABT_pool pool, const ABT_thread *threads, size_t num,
                                        ABT_pool_context pool_ctx) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    if (abt_pool_of(pool)->type == ABT_POOL_NEW && abt_pool_of(pool)->def.push_many != NULL)
        return push_many(pool, threads, num, pool_ctx);
    ABT_CHECK(abt_pool_of(pool)->type != ABT_POOL_NEW, ABT_ERR_POOL);
    int error = ABT_SUCCESS;
    for (size_t i = 0; i < num && error == ABT_SUCCESS; i++)
        error = ABT_pool_push_thread_ex(pool, threads[i], pool_ctx);
    return error;
}

ABT_EXPORT int ABT_pool_push_threads(ABT_pool pool, const ABT_thread *threads, size_t num) {
    return ABT_pool_push_threads_ex(pool, threads, num, ABT_POOL_CONTEXT_OP_POOL_OTHER);
}

/* --- looking ---------------------------------------------------------------------------------------- */

/* What a pool of the program's is asked with, where its function gives the other kind of handle. */
struct print {
    void *arg;
    void (*unit)(void *, ABT_unit);
    void (*thread)(void *, ABT_thread);
};

static void print_unit_of(void *print, ABT_thread thread) {
    const struct print *with = print;
    with->unit(with->arg, abt_thread_unit(abt_thread_of(thread)));
}

static void print_thread_of(void *print, ABT_unit unit) {
    const struct print *with = print;
    with->thread(with->arg, thread_or_null(abt_unit_thread(unit)));
}

static int print_list(struct abt_pool *pool, const struct print *with) {
    size_t count;
    struct abt_thread **threads = abt_list_snapshot(pool, &count);
    ABT_CHECK(threads != NULL, ABT_ERR_MEM);
    for (size_t i = 0; i < count; i++)
        if (with->unit != NULL)
            with->unit(with->arg, abt_thread_unit(threads[i]));
        else
            with->thread(with->arg, abt_handle(threads[i]));
    free(threads);
    return ABT_SUCCESS;
}

/* One of the two functions is not NULL. */
static int print_all(ABT_pool handle, struct print *with) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_POOL);
    struct abt_pool *pool = abt_pool_of(handle);
    if (pool->type == ABT_POOL_OURS)
        return print_list(pool, with);
    if (pool->type == ABT_POOL_OLD) {
        ABT_CHECK(pool->def.old.p_print_all != NULL, ABT_ERR_POOL);
        abt_pool_call_begin();
        if (with->unit != NULL)
            pool->def.old.p_print_all(handle, with->arg, with->unit);
        else
            pool->def.old.p_print_all(handle, with, print_thread_of);
        abt_pool_call_end();
        return ABT_SUCCESS;
    }
    ABT_CHECK(pool->def.print_all != NULL, ABT_ERR_POOL);
    abt_pool_call_begin();
    if (with->thread != NULL)
        pool->def.print_all(handle, with->arg, with->thread);
    else
        pool->def.print_all(handle, with, print_unit_of);
    abt_pool_call_end();
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_pool_print_all(ABT_pool pool, void *arg, void (*print_fn)(void *, ABT_unit)) {
    return print_all(pool, &(struct print){.arg = arg, .unit = print_fn});
}

ABT_EXPORT int ABT_pool_print_all_threads(ABT_pool pool, void *arg, void (*print_fn)(void *, ABT_thread)) {
    return print_all(pool, &(struct print){.arg = arg, .thread = print_fn});
}

ABT_EXPORT int ABT_pool_add_sched(ABT_pool handle, ABT_sched sched_handle) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_POOL);
    ABT_CHECK_HANDLE(sched_handle, ABT_ERR_INV_SCHED);
    struct abt_sched *sched = abt_sched_of(sched_handle);
    uint32_t unused = ABT_SCHED_UNUSED;
    /* Pairs with release and abt_sched_in_pool: its last user is through with it. */
    ABT_CHECK(cas_acq_rel(&sched->use, &unused, ABT_SCHED_IN_POOL), ABT_ERR_INV_SCHED);
    const struct abt_attr attr = {.stack_size = abt.sched_stack_size, .migratable = ABT_FALSE};
    int error;
    struct abt_thread *thread =
        abt_thread_new(ABT_KIND_THREAD, abt_pool_of(handle), abt_sched_in_pool, sched, &attr, false, &error);
    if (thread == NULL) {
        store_release(&sched->use, ABT_SCHED_UNUSED);
        return error;
    }
    abt_has_more(thread);
    thread->sched = sched;
    sched->thread = thread;
    abt_ready(thread, ABT_POOL_CONTEXT_OP_THREAD_CREATE, false);
    return ABT_SUCCESS;
}
