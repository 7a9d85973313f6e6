// SPDX-License-Identifier: Apache-2.0
/* What the library tells of itself and of its objects. The printed form is for people, and may change. */
#include <stdlib.h>

#include "layer.h"

/* --- configuration ------------------------------------------------------------------------------------- */

ABT_EXPORT int ABT_info_query_config(ABT_info_query_kind query_kind, void *val) {
    ABT_CHECK((unsigned)query_kind <= ABT_INFO_QUERY_KIND_ENABLED_LAZY_STACK_ALLOC, ABT_ERR_INV_QUERY_KIND);
    ABT_CHECK(load_relaxed(&abt.is_on), ABT_ERR_UNINITIALIZED);
    switch (query_kind) {
    case ABT_INFO_QUERY_KIND_ENABLED_CHECK_ERROR:
    case ABT_INFO_QUERY_KIND_ENABLED_PRESERVE_FPU:
    case ABT_INFO_QUERY_KIND_ENABLED_THREAD_CANCEL:
    case ABT_INFO_QUERY_KIND_ENABLED_TASK_CANCEL:
    case ABT_INFO_QUERY_KIND_ENABLED_MIGRATION:
    case ABT_INFO_QUERY_KIND_ENABLED_STACKABLE_SCHED:
    case ABT_INFO_QUERY_KIND_ENABLED_EXTERNAL_THREAD:
    case ABT_INFO_QUERY_KIND_ENABLED_LAZY_STACK_ALLOC: *(ABT_bool *)val = ABT_TRUE; break;
    case ABT_INFO_QUERY_KIND_FCONTEXT: *(ABT_bool *)val = ABT_TRUE; break; /* as its switch: no system call */
    case ABT_INFO_QUERY_KIND_ENABLED_PRINT_CONFIG: *(ABT_bool *)val = abt.prints_config; break;
    case ABT_INFO_QUERY_KIND_ENABLED_AFFINITY: *(ABT_bool *)val = abt.sets_affinity; break;
    case ABT_INFO_QUERY_KIND_MAX_NUM_XSTREAMS: *(unsigned *)val = load_relaxed(&abt.max_streams); break;
    case ABT_INFO_QUERY_KIND_DEFAULT_THREAD_STACKSIZE: *(size_t *)val = abt.stack_size; break;
    case ABT_INFO_QUERY_KIND_DEFAULT_SCHED_STACKSIZE: *(size_t *)val = abt.sched_stack_size; break;
    case ABT_INFO_QUERY_KIND_DEFAULT_SCHED_EVENT_FREQ: *(uint64_t *)val = abt.event_freq; break;
    case ABT_INFO_QUERY_KIND_DEFAULT_SCHED_SLEEP_NSEC: *(uint64_t *)val = abt.sched_sleep; break;
    case ABT_INFO_QUERY_KIND_ENABLED_STACK_OVERFLOW_CHECK: *(int *)val = (int)abt.guard; break;
    default: *(int *)val = 0; break; /* a bool, or an int that says none */
    }
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_info_print_config(FILE *fp) {
    ABT_CHECK(load_relaxed(&abt.is_on), ABT_ERR_UNINITIALIZED);
    fprintf(fp,
            "Argobots interface " ABT_VERSION " on libthrum\n"
            "  streams at most            %u (a hint)\n"
            "  stack of a thread          %zu bytes\n"
            "  stack of a main scheduler  %zu bytes\n"
            "  events checked             after %u work units\n"
            "  spin before sleeping       %u us\n",
            abt.max_streams, abt.stack_size, abt.sched_stack_size, abt.event_freq,
            (unsigned)(abt.spin / 1000));
    fflush(fp);
    return ABT_SUCCESS;
}

/* --- objects ------------------------------------------------------------------------------------------- */

static const char *kind_of_pool(const struct abt_pool *pool) {
    static const char *const kinds[] = {"FIFO", "FIFO_WAIT", "RANDWS"};
    return pool->type == ABT_POOL_OURS ? kinds[pool->kind] : "user-defined";
}

static const char *kind_of_sched(const struct abt_sched *sched) {
    static const char *const kinds[] = {"DEFAULT", "BASIC", "PRIO", "RANDWS", "BASIC_WAIT"};
    return sched->predef >= 0 ? kinds[sched->predef] : "user-defined";
}

static const char *state_of(const struct abt_thread *thread) {
    static const char *const states[] = {"READY", "RUNNING", "BLOCKED", "TERMINATED"};
    return states[load_acquire(&thread->state)];
}

ABT_EXPORT int ABT_info_print_pool(FILE *fp, ABT_pool handle) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_POOL);
    struct abt_pool *pool = abt_pool_of(handle);
    static const char *const access[] = {"PRIV", "SPSC", "MPSC", "SPMC", "MPMC"};
    fprintf(fp, "pool %llu (%p): %s, %s, ", (unsigned long long)pool->id, (void *)pool, kind_of_pool(pool),
            access[pool->access]);
    size_t size = abt_pool_size(pool);
    if (size != SIZE_MAX)
        fprintf(fp, "%zu ready, ", size);
    int32_t blocked = abt_pool_blocked(pool);
    fprintf(fp, "%d blocked, in %u schedulers\n", blocked > 0 ? blocked : 0, load_relaxed(&pool->scheds));
    fflush(fp);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_info_print_sched(FILE *fp, ABT_sched handle) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_SCHED);
    const struct abt_sched *sched = abt_sched_of(handle);
    static const char *const uses[] = {"unused", "main", "in a pool"};
    fprintf(fp, "scheduler %p: %s, %s, %d pools%s\n", (const void *)sched, kind_of_sched(sched),
            uses[load_relaxed(&sched->use)], sched->count, sched->automatic ? ", automatic" : "");
    for (int i = 0; i < sched->count; i++) {
        fputs("  ", fp);
        ABT_info_print_pool(fp, abt_pool_handle(sched->pools[i]));
    }
    fflush(fp);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_info_print_xstream(FILE *fp, ABT_xstream xstream) {
    ABT_CHECK_HANDLE(xstream, ABT_ERR_INV_XSTREAM);
    const struct abt_stream *stream = abt_stream_of(xstream);
    fprintf(fp, "execution stream %d (%p): %s%s, kernel thread %d\n", load_relaxed(&stream->rank),
            (const void *)stream,
            load_acquire(&stream->state) == ABT_XSTREAM_STATE_RUNNING ? "RUNNING" : "TERMINATED",
            stream->is_primary ? ", primary" : "", load_relaxed(&stream->tid));
    return ABT_info_print_sched(fp, abt_sched_handle(stream->sched));
}

/* Which are there is written down first: printing takes long. None may be freed meanwhile. */
ABT_EXPORT int ABT_info_print_all_xstreams(FILE *fp) {
    ABT_CHECK(load_relaxed(&abt.is_on), ABT_ERR_UNINITIALIZED);
    struct abt_stream **streams = malloc(WORKERS_MAX * sizeof *streams);
    ABT_CHECK(streams != NULL, ABT_ERR_MEM);
    int count = 0;
    abt_lock(&abt.lock);
    for (struct abt_stream *at = abt.streams; at != NULL && count < WORKERS_MAX; at = at->next)
        streams[count++] = at;
    abt_unlock(&abt.lock);
    fprintf(fp, "%d execution streams\n", count);
    for (int i = count; i-- > 0;)
        ABT_info_print_xstream(fp, abt_stream_handle(streams[i]));
    free(streams);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_info_print_thread(FILE *fp, ABT_thread handle) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_THREAD);
    struct abt_thread *thread = abt_thread_of(handle);
    static const char *const kinds[] = {"thread", "tasklet", "main scheduler"};
    fprintf(fp, "%s %llu (%p): %s%s%s, pool %lld, stack %zu bytes\n", kinds[thread->kind],
            (unsigned long long)abt_thread_id(thread), (void *)thread, state_of(thread),
            thread->flags & ABT_FLAG_PRIMARY ? ", primary" : "",
            thread->flags & ABT_FLAG_NAMED ? "" : ", unnamed",
            thread->pool != NULL ? (long long)thread->pool->id : -1LL,
            abt_is_tasklet(thread) ? (size_t)0 : thread->stack_size);
    fflush(fp);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_info_print_task(FILE *fp, ABT_task task) {
    ABT_CHECK_HANDLE(task, ABT_ERR_INV_TASK);
    return ABT_info_print_thread(fp, task);
}

ABT_EXPORT int ABT_info_print_thread_attr(FILE *fp, ABT_thread_attr handle) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_THREAD_ATTR);
    const struct abt_attr *attr = (const struct abt_attr *)(const void *)handle;
    fprintf(fp, "thread attributes %p: stack %zu bytes at %p, %smigratable\n", (const void *)attr,
            attr->stack_size, attr->stack, attr->migratable ? "" : "not ");
    fflush(fp);
    return ABT_SUCCESS;
}

/* --- stacks -------------------------------------------------------------------------------------------- */

enum { WORDS_MAX = 4096 };

/* The words from where it has left its stack up to the top. Of one that runs, that is somewhere else already. Not checked by
 * sanitizers: among them are words that no variable has. */
static __attribute__((noinline, no_sanitize_address, no_sanitize_thread)) void
print_words(FILE *fp, const struct thrum_unit *unit) {
    /* Pairs with arch_switch's store. */
    const uintptr_t *word = load_acquire(&unit->sp), *top = (const uintptr_t *)(const void *)unit->stack_top;
    for (int i = 0; word + 4 <= top && i < WORDS_MAX; i += 4, word += 4)
        fprintf(fp, "  %p: %016lx %016lx %016lx %016lx\n", (const void *)word, (unsigned long)word[0],
                (unsigned long)word[1], (unsigned long)word[2], (unsigned long)word[3]);
}

ABT_EXPORT int ABT_info_print_thread_stack(FILE *fp, ABT_thread handle) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_THREAD);
    struct abt_thread *thread = abt_thread_of(handle);
    ABT_info_print_thread(fp, handle);
    const struct thrum_unit *unit = thread->unit;
    uint32_t state = load_acquire(&thread->state);
    if (abt_is_tasklet(thread) || thread->flags & ABT_FLAG_PRIMARY || unit == NULL || unit->stack_top == NULL)
        fputs("  no stack of its own\n", fp);
    else if (state == ABT_THREAD_STATE_RUNNING ||
             load_acquire(&unit->sp) == UNIT_ON_CPU) /* pairs as in print_words */
        fputs("  it runs\n", fp);
    else
        print_words(fp, unit);
    fflush(fp);
    return ABT_SUCCESS;
}

static void print_stack(void *fp, ABT_thread thread) {
    ABT_info_print_thread_stack(fp, thread);
}

ABT_EXPORT int ABT_info_print_thread_stacks_in_pool(FILE *fp, ABT_pool pool) {
    ABT_CHECK_HANDLE(pool, ABT_ERR_INV_POOL);
    return ABT_pool_print_all_threads(pool, fp, print_stack);
}
