// SPDX-License-Identifier: Apache-2.0
/* Execution streams: a worker each, with a main thread bound to it that runs the main scheduler's function.
 *
 * The end of one: (1) a thread asks the main scheduler to finish, or the stream to exit; (2) its function returns, when it has
 * nothing left to run; (3) the main thread says that it has ended, to the joiner of the stream; (4) the joiner joins the main
 * thread's unit, so that nothing is bound to the worker any more, and stops the worker. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "layer.h"
#include "thrum/worker.h"

struct abt_stream *abt_stream_of_worker[WORKER_IDS];

struct abt_stream *abt_stream_preempts_here(void) {
    const struct worker *worker = enter();
    struct abt_stream *stream = worker != NULL ? abt_stream_of_current(worker) : NULL;
    leave();
    return stream;
}

void abt_stream_events(struct abt_stream *stream, struct abt_thread *host) {
    if (__builtin_expect(load_relaxed(&abt.dump_is_wanted), 0))
        abt_dump(stream);
    if (__builtin_expect(stream->is_primary && load_relaxed(&abt.primary_waits) != NULL, 0))
        abt_run_primary(host);
}

/* The scheduler is the stream's no more. */
static void release(struct abt_sched *sched) {
    sched->stream = NULL;
    store_release(&sched->use, ABT_SCHED_UNUSED);
    if (sched->automatic)
        abt_sched_delete(sched);
}

/* --- the main thread ----------------------------------------------------------------------------------- */

static void replace(struct abt_stream *stream) {
    struct abt_sched *old = stream->sched;
    stream->sched = stream->replacement;
    stream->replacement = NULL;
    release(old);
    struct abt_thread *replacer = stream->replacer;
    stream->replacer = NULL;
    abt_ready(replacer, ABT_POOL_CONTEXT_OP_THREAD_RESUME, false);
}

static void own_pools(const struct abt_sched *sched, void (*own)(struct abt_pool *)) {
    for (int i = 0; i < sched->count; i++)
        own(sched->pools[i]);
}

static void run_main(void *arg) {
    struct abt_stream *stream = arg;
    stream->main->last_stream = stream;
    stream->main->unit = front_self();
    if (!stream->is_primary &&
        !abt.preempts) /* as a thread of pthread_create has it; the core's workers block all */
        pthread_sigmask(SIG_SETMASK, &stream->signals, NULL);
    store_release(&stream->tid, gettid());
    abt_has_more(stream->main);
    abt_dump_await(stream);
    for (;;) {
        stream->sched->thread = stream->main;
        stream->main->sched = stream->sched;
        own_pools(stream->sched, abt_pool_own);
        stream->sched->def.run(abt_sched_handle(stream->sched));
        own_pools(stream->sched, abt_pool_own_no_more);
        if (stream->replacement == NULL)
            break;
        replace(stream);
    }
    abt_units_drop(stream);
    store_release(&stream->state, ABT_XSTREAM_STATE_TERMINATED);
}

static int start(struct abt_stream *stream) {
    thrum_attr_t attr;
    const struct abt_attr own = {.stack_size = abt.sched_stack_size};
    int error;
    stream->main = abt_thread_new(ABT_KIND_MAIN, NULL, run_main, stream, &own, true, &error);
    ABT_CHECK(stream->main != NULL, error);
    uint32_t state = load_relaxed(&stream->state);
    int32_t tid = load_relaxed(&stream->tid);
    thrum_attr_init(&attr);
    thrum_attr_set_worker(&attr, stream->worker);
    thrum_attr_set_preempt(&attr, THRUM_PREEMPT_NONE);
    store_relaxed(&stream->state, ABT_XSTREAM_STATE_RUNNING);
    store_relaxed(&stream->tid, 0);
    stream->main->state = ABT_THREAD_STATE_RUNNING;
    store_relaxed(&abt_stream_of_worker[stream->worker], stream);
    if (thrum_attr_set_stack_size(&attr, abt.sched_stack_size) == 0 &&
        thrum_spawn(&stream->core, &attr, abt_thread_entry, stream->main) == 0)
        return ABT_SUCCESS;
    store_relaxed(&abt_stream_of_worker[stream->worker], NULL);
    store_relaxed(&stream->state, state); /* as it was, if it is not revived */
    store_relaxed(&stream->tid, tid);
    abt_thread_delete(stream->main);
    stream->main = NULL;
    return ABT_ERR_MEM;
}

/* A worker of its own, too. */
static int start_worker(struct abt_stream *stream) {
    pthread_sigmask(SIG_BLOCK, NULL, &stream->signals);
    int error = thrum_worker_add(&stream->worker);
    if (error != 0)
        return error == ENOMEM ? ABT_ERR_MEM : ABT_ERR_SYS;
    error = start(stream);
    if (error != ABT_SUCCESS)
        thrum_worker_stop(stream->worker);
    return error;
}

void abt_stream_end(struct abt_stream *stream) {
    if (stream->main == NULL)
        return;
    abt_sched_request(stream->sched, ABT_SCHED_FINISH);
    abt_thread_join(stream->main);
    thrum_join(stream->core, NULL);
    store_relaxed(&abt_stream_of_worker[stream->worker], NULL);
    if (!stream->is_primary)
        thrum_worker_stop(stream->worker);
    abt_thread_delete(stream->main);
    stream->main = NULL;
}

/* --- life ---------------------------------------------------------------------------------------------- */

static bool rank_is_taken_locked(int rank) {
    for (const struct abt_stream *stream = abt.streams; stream != NULL; stream = stream->next)
        if (stream->rank == rank)
            return true;
    return false;
}

static void set_rank_locked(struct abt_stream *stream, int rank) {
    store_relaxed(&stream->rank, rank);
    if ((uint32_t)rank >= abt.max_streams)
        store_relaxed(&abt.max_streams, (uint32_t)rank + 1);
}

/* False: the rank is taken. Any rank, if it is negative. */
static bool enlist(struct abt_stream *stream, int rank) {
    abt_lock(&abt.lock);
    bool is_free = rank < 0 || !rank_is_taken_locked(rank);
    if (rank < 0)
        for (rank = 0; rank_is_taken_locked(rank);)
            rank++;
    if (is_free) {
        set_rank_locked(stream, rank);
        stream->next = abt.streams;
        abt.streams = stream;
        abt.stream_count++;
    }
    abt_unlock(&abt.lock);
    return is_free;
}

static void delist(struct abt_stream *stream) {
    abt_lock(&abt.lock);
    struct abt_stream **place = &abt.streams;
    while (*place != NULL && *place != stream)
        place = &(*place)->next;
    if (*place == stream) {
        *place = stream->next;
        abt.stream_count--;
    }
    abt_unlock(&abt.lock);
}

static bool claim(struct abt_sched *sched, struct abt_stream *stream) {
    uint32_t unused = ABT_SCHED_UNUSED;
    /* Pairs with release and abt_sched_in_pool: its last user is through with it. */
    if (!cas_acq_rel(&sched->use, &unused, ABT_SCHED_MAIN))
        return false;
    sched->stream = stream;
    store_relaxed(&sched->request, 0);
    return true;
}

/* ... nor has it ever been. */
static void unclaim(struct abt_sched *sched) {
    sched->stream = NULL;
    store_release(&sched->use, ABT_SCHED_UNUSED);
}

int abt_stream_new(struct abt_sched *sched, int rank, bool is_primary, struct abt_stream **result) {
    struct abt_stream *stream = calloc(1, sizeof *stream);
    ABT_CHECK(stream != NULL, ABT_ERR_MEM);
    stream->sched = sched;
    stream->is_primary = is_primary;
    if (!claim(sched, stream)) {
        free(stream);
        return ABT_ERR_INV_SCHED;
    }
    fetch_add_relaxed(&abt.next_pool_id, 1); /* Argobots has a pool of its own there; programs see the ids */
    int error = enlist(stream, rank) ? ABT_SUCCESS : ABT_ERR_INV_XSTREAM_RANK;
    if (error == ABT_SUCCESS) {
        error = is_primary ? start(stream) : start_worker(stream);
        if (error != ABT_SUCCESS)
            delist(stream);
    }
    if (error != ABT_SUCCESS) {
        unclaim(sched);
        free(stream);
        return error;
    }
    *result = stream;
    return ABT_SUCCESS;
}

void abt_stream_delete(struct abt_stream *stream) {
    delist(stream);
    release(stream->sched);
    abt_spare_drop(stream);
    free(stream);
}

static int create(ABT_sched handle, int rank, ABT_xstream *newxstream) {
    struct abt_sched *sched;
    struct abt_stream *stream;
    *newxstream = ABT_XSTREAM_NULL;
    int error = ABT_SUCCESS;
    bool is_given = !abt_is_null(handle);
    if (is_given)
        sched = abt_sched_of(handle);
    else
        error = abt_sched_new_basic(ABT_SCHED_DEFAULT, 0, NULL, ABT_SCHED_CONFIG_NULL, &sched);
    if (error != ABT_SUCCESS)
        return error;
    error = abt_stream_new(sched, rank, false, &stream);
    if (error == ABT_SUCCESS)
        *newxstream = abt_stream_handle(stream);
    else if (!is_given)
        abt_sched_delete(sched);
    return error;
}

ABT_EXPORT int ABT_xstream_create(ABT_sched sched, ABT_xstream *newxstream) {
    return create(sched, ABT_XSTREAM_ANY_RANK, newxstream);
}

ABT_EXPORT int ABT_xstream_create_with_rank(ABT_sched sched, int rank, ABT_xstream *newxstream) {
    *newxstream = ABT_XSTREAM_NULL;
    ABT_CHECK(rank >= 0, ABT_ERR_INV_XSTREAM_RANK);
    return create(sched, rank, newxstream);
}

ABT_EXPORT int ABT_xstream_create_basic(ABT_sched_predef predef, int num_pools, ABT_pool *pools,
                                        ABT_sched_config config, ABT_xstream *newxstream) {
    struct abt_sched *sched;
    *newxstream = ABT_XSTREAM_NULL;
    int error = abt_sched_new_basic((int)predef, num_pools, pools, config, &sched);
    if (error != ABT_SUCCESS)
        return error;
    error = create(abt_sched_handle(sched), ABT_XSTREAM_ANY_RANK, newxstream);
    if (error != ABT_SUCCESS)
        abt_sched_delete(sched);
    return error;
}

static int may_end(ABT_xstream xstream) {
    ABT_CHECK_HANDLE(xstream, ABT_ERR_INV_XSTREAM);
    ABT_CHECK(!abt_stream_of(xstream)->is_primary, ABT_ERR_INV_XSTREAM);
    ABT_CHECK(abt_self() == NULL || abt_stream_here() != abt_stream_of(xstream), ABT_ERR_INV_XSTREAM);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_xstream_join(ABT_xstream xstream) {
    int error = may_end(xstream);
    if (error == ABT_SUCCESS)
        abt_stream_end(abt_stream_of(xstream));
    return error;
}

ABT_EXPORT int ABT_xstream_free(ABT_xstream *xstream) {
    int error = may_end(*xstream);
    if (error != ABT_SUCCESS)
        return error;
    abt_stream_end(abt_stream_of(*xstream));
    abt_stream_delete(abt_stream_of(*xstream));
    *xstream = ABT_XSTREAM_NULL;
    return ABT_SUCCESS;
}

/* If it has ended by itself its kernel thread is still there. */
ABT_EXPORT int ABT_xstream_revive(ABT_xstream xstream) {
    ABT_CHECK_HANDLE(xstream, ABT_ERR_INV_XSTREAM);
    struct abt_stream *stream = abt_stream_of(xstream);
    ABT_CHECK(load_acquire(&stream->state) == ABT_XSTREAM_STATE_TERMINATED, ABT_ERR_INV_XSTREAM);
    abt_stream_end(stream);
    store_relaxed(&stream->request, 0);
    store_relaxed(&stream->sched->request, 0);
    return start_worker(stream);
}

static int cancel(struct abt_stream *stream) {
    fetch_or_acq_rel(&stream->request, (uint32_t)ABT_STREAM_EXIT);
    abt_stream_wake(stream);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_xstream_cancel(ABT_xstream xstream) {
    ABT_CHECK_HANDLE(xstream, ABT_ERR_INV_XSTREAM);
    ABT_CHECK(!abt_stream_of(xstream)->is_primary, ABT_ERR_INV_XSTREAM);
    return cancel(abt_stream_of(xstream));
}

ABT_EXPORT int ABT_xstream_exit(void) {
    ABT_CHECK(load_relaxed(&abt.is_on), ABT_ERR_UNINITIALIZED);
    struct abt_thread *self = abt_self();
    ABT_CHECK(self != NULL, ABT_ERR_INV_XSTREAM);
    ABT_CHECK(!abt_is_tasklet(self), ABT_ERR_INV_THREAD);
    ABT_CHECK(abt_stream_here() != abt.primary_stream, ABT_ERR_INV_XSTREAM);
    ABT_CHECK(self->kind == ABT_KIND_THREAD, ABT_ERR_INV_THREAD);
    abt_preempt_off(self); /* it ends on the stream that it cancels */
    struct abt_stream *stream = abt_stream_here();
    if (stream != abt.primary_stream) {
        cancel(stream);
        ABT_self_exit();
    }
    abt_preempt_on(self);
    return ABT_ERR_INV_XSTREAM;
}

/* --- questions ----------------------------------------------------------------------------------------- */

ABT_EXPORT int ABT_xstream_self(ABT_xstream *xstream) {
    *xstream = ABT_XSTREAM_NULL;
    ABT_CHECK(load_relaxed(&abt.is_on), ABT_ERR_UNINITIALIZED);
    return ABT_self_get_xstream(xstream);
}

ABT_EXPORT int ABT_xstream_self_rank(int *rank) {
    ABT_CHECK(load_relaxed(&abt.is_on), ABT_ERR_UNINITIALIZED);
    return ABT_self_get_xstream_rank(rank);
}

ABT_EXPORT int ABT_xstream_set_rank(ABT_xstream xstream, int rank) {
    ABT_CHECK_HANDLE(xstream, ABT_ERR_INV_XSTREAM);
    struct abt_stream *stream = abt_stream_of(xstream);
    ABT_CHECK(!stream->is_primary, ABT_ERR_INV_XSTREAM);
    ABT_CHECK(rank >= 0, ABT_ERR_INV_XSTREAM_RANK);
    abt_lock(&abt.lock);
    bool is_free = stream->rank == rank || !rank_is_taken_locked(rank);
    if (is_free)
        set_rank_locked(stream, rank);
    abt_unlock(&abt.lock);
    return is_free ? ABT_SUCCESS : ABT_ERR_INV_XSTREAM_RANK;
}

ABT_EXPORT int ABT_xstream_get_rank(ABT_xstream xstream, int *rank) {
    ABT_CHECK_HANDLE(xstream, ABT_ERR_INV_XSTREAM);
    *rank = load_relaxed(&abt_stream_of(xstream)->rank);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_xstream_get_main_sched(ABT_xstream xstream, ABT_sched *sched) {
    ABT_CHECK_HANDLE(xstream, ABT_ERR_INV_XSTREAM);
    *sched = abt_sched_handle(abt_stream_of(xstream)->sched);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_xstream_get_main_pools(ABT_xstream xstream, int max_pools, ABT_pool *pools) {
    ABT_CHECK_HANDLE(xstream, ABT_ERR_INV_XSTREAM);
    ABT_CHECK(max_pools >= 0, ABT_ERR_INV_ARG);
    const struct abt_sched *sched = abt_stream_of(xstream)->sched;
    for (int i = 0; i < max_pools && i < sched->count; i++)
        pools[i] = abt_pool_handle(sched->pools[i]);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_xstream_get_state(ABT_xstream xstream, ABT_xstream_state *state) {
    ABT_CHECK_HANDLE(xstream, ABT_ERR_INV_XSTREAM);
    *state = (ABT_xstream_state)load_acquire(&abt_stream_of(xstream)->state);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_xstream_equal(ABT_xstream xstream1, ABT_xstream xstream2, ABT_bool *result) {
    *result = xstream1 == xstream2;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_xstream_get_num(int *num_xstreams) {
    *num_xstreams = 0;
    ABT_CHECK(load_relaxed(&abt.is_on), ABT_ERR_UNINITIALIZED);
    *num_xstreams = load_relaxed(&abt.stream_count);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_xstream_is_primary(ABT_xstream xstream, ABT_bool *is_primary) {
    ABT_CHECK_HANDLE(xstream, ABT_ERR_INV_XSTREAM);
    *is_primary = abt_stream_of(xstream)->is_primary;
    return ABT_SUCCESS;
}

/* --- another main scheduler ---------------------------------------------------------------------------- */

static int may_set_sched(ABT_xstream xstream, struct abt_thread **self) {
    *self = abt_self();
    ABT_CHECK(*self != NULL, ABT_ERR_INV_XSTREAM);
    ABT_CHECK(!abt_is_tasklet(*self), ABT_ERR_INV_THREAD);
    ABT_CHECK_HANDLE(xstream, ABT_ERR_INV_XSTREAM);
    const struct abt_stream *stream = abt_stream_of(xstream);
    if (load_acquire(&stream->state) == ABT_XSTREAM_STATE_RUNNING)
        ABT_CHECK(stream == abt_stream_here() && (*self)->kind == ABT_KIND_THREAD, ABT_ERR_XSTREAM_STATE);
    return ABT_SUCCESS;
}

static int set_sched(struct abt_stream *stream, struct abt_thread *self, struct abt_sched *sched) {
    ABT_CHECK(claim(sched, stream), ABT_ERR_INV_SCHED);
    if (load_acquire(&stream->state) == ABT_XSTREAM_STATE_TERMINATED) {
        abt_stream_end(stream);
        struct abt_sched *old = stream->sched;
        stream->sched = sched;
        release(old);
        return ABT_SUCCESS;
    }
    abt_preempt_off(self); /* it waits on the stream whose scheduler it replaces */
    int error =
        stream == abt_stream_here() ? abt_thread_associate(self, sched->pools[0]) : ABT_ERR_XSTREAM_STATE;
    if (error != ABT_SUCCESS) {
        abt_preempt_on(self);
        unclaim(sched);
        return error;
    }
    if (stream->replacement !=
        NULL) { /* by another thread, which the old scheduler has not come to yet: this one counts */
        struct abt_sched *before = stream->replacement;
        stream->replacement = NULL;
        release(before);
        abt_ready(stream->replacer, ABT_POOL_CONTEXT_OP_THREAD_RESUME, false);
    }
    stream->replacement = sched;
    stream->replacer = self;
    abt_sched_request(stream->sched, ABT_SCHED_REPLACE);
    abt_leave(ABT_LEFT_REPLACING, 0, NULL);
    abt_preempt_on(self);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_xstream_set_main_sched(ABT_xstream xstream, ABT_sched handle) {
    struct abt_thread *self;
    ABT_CHECK_HANDLE(xstream, ABT_ERR_INV_XSTREAM); /* here first, as in the original */
    int error = may_set_sched(xstream, &self);
    if (error != ABT_SUCCESS)
        return error;
    if (!abt_is_null(handle))
        return set_sched(abt_stream_of(xstream), self, abt_sched_of(handle));
    return ABT_xstream_set_main_sched_basic(xstream, ABT_SCHED_DEFAULT, 0, NULL);
}

ABT_EXPORT int ABT_xstream_set_main_sched_basic(ABT_xstream xstream, ABT_sched_predef predef, int num_pools,
                                                ABT_pool *pools) {
    struct abt_thread *self;
    struct abt_sched *sched;
    int error = may_set_sched(xstream, &self);
    if (error == ABT_SUCCESS)
        error = abt_sched_new_basic((int)predef, num_pools, pools, ABT_SCHED_CONFIG_NULL, &sched);
    if (error != ABT_SUCCESS)
        return error;
    error = set_sched(abt_stream_of(xstream), self, sched);
    if (error != ABT_SUCCESS)
        abt_sched_delete(sched);
    return error;
}

/* --- CPUs ---------------------------------------------------------------------------------------------- */

/* Without ABT_SET_AFFINITY it is as with Argobots as most have it, built without affinity: programs take that for an answer (Margo puts
 * what it is told into its configuration). */
#define ABT_CHECK_AFFINITY() ABT_CHECK(abt.sets_affinity, ABT_ERR_FEATURE_NA)

/* Its kernel thread may be about to begin. */
static pid_t tid_of(const struct abt_stream *stream) {
    pid_t tid;
    while ((tid = load_acquire(&stream->tid)) == 0)
        sched_yield();
    return tid;
}

static int bind(struct abt_stream *stream, int count, const int *cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < count; i++) {
        ABT_CHECK(cpus[i] >= 0 && cpus[i] < CPU_SETSIZE, ABT_ERR_CPUID);
        CPU_SET((unsigned)cpus[i], &set);
    }
    if (sched_setaffinity(tid_of(stream), sizeof set, &set) != 0)
        return errno == EINVAL ? ABT_ERR_CPUID : ABT_ERR_SYS;
    stream->is_bound = true;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_xstream_set_cpubind(ABT_xstream xstream, int cpuid) {
    ABT_CHECK_HANDLE(xstream, ABT_ERR_INV_XSTREAM);
    ABT_CHECK_AFFINITY();
    return bind(abt_stream_of(xstream), 1, &cpuid);
}

ABT_EXPORT int ABT_xstream_set_affinity(ABT_xstream xstream, int num_cpuids, int *cpuids) {
    ABT_CHECK_HANDLE(xstream, ABT_ERR_INV_XSTREAM);
    ABT_CHECK(num_cpuids >= 0, ABT_ERR_INV_ARG);
    ABT_CHECK_AFFINITY();
    if (num_cpuids > 0)
        return bind(abt_stream_of(xstream), num_cpuids, cpuids);
    cpu_set_t all; /* none given: as the process */
    if (sched_getaffinity(getpid(), sizeof all, &all) != 0 ||
        sched_setaffinity(tid_of(abt_stream_of(xstream)), sizeof all, &all) != 0)
        return ABT_ERR_SYS;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_xstream_get_affinity(ABT_xstream xstream, int max_cpuids, int *cpuids, int *num_cpuids) {
    ABT_CHECK_HANDLE(xstream, ABT_ERR_INV_XSTREAM);
    ABT_CHECK(max_cpuids >= 0, ABT_ERR_INV_ARG);
    ABT_CHECK_AFFINITY();
    cpu_set_t set;
    if (sched_getaffinity(tid_of(abt_stream_of(xstream)), sizeof set, &set) != 0)
        return ABT_ERR_SYS;
    int count = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET((unsigned)cpu, &set)) {
            if (count < max_cpuids)
                cpuids[count] = cpu;
            count++;
        }
    if (num_cpuids != NULL)
        *num_cpuids = count;
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_xstream_get_cpubind(ABT_xstream xstream, int *cpuid) {
    int count, error = ABT_xstream_get_affinity(xstream, 1, cpuid, &count);
    if (error == ABT_SUCCESS && count == 0)
        return ABT_ERR_FEATURE_NA;
    return error;
}
