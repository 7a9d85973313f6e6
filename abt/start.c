// SPDX-License-Identifier: Apache-2.0
/* ABT_init and ABT_finalize, and what the environment says.
 *
 * ABT_init starts a runtime with one worker, the primary stream's, makes the caller the primary thread, and puts it into the
 * pool, out of which the main scheduler runs it. ABT_finalize undoes that: the main scheduler runs what is left, and ends; then
 * the primary, which waits for that, belongs to its worker again. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "direct.h"

struct abt_global abt;
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;

/* ABT_name or ABT_ENV_name. */
static const char *variable(const char *one, const char *other) {
    const char *value = getenv(one);
    return value != NULL ? value : getenv(other);
}

/* As the original: what is out of range is taken as its nearest bound, what is no number is ignored. */
static uint64_t number(const char *one, const char *other, uint64_t unless, uint64_t least, uint64_t most) {
    const char *text = variable(one, other);
    char *end;
    if (text == NULL)
        return unless;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text)
        return unless;
    if (errno == ERANGE)
        value = value > 0 ? INT64_MAX : 0;
    uint64_t bounded = value < 0 ? 0 : (uint64_t)value;
    return bounded < least ? least : bounded > most ? most : bounded;
}

/* Of words for yes or no, in either case. */
static bool is_one_of(const char *text, const char *const words[5]) {
    for (int i = 0; i < 5; i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

/* What is not known is `no`. */
static bool is_yes(const char *text) {
    return text != NULL && is_one_of(text, (const char *const[5]){"1", "y", "yes", "true", "on"});
}

/* Lists of CPUs are a yes, too. */
static bool is_not_no(const char *text) {
    return text != NULL && *text != 0 &&
           !is_one_of(text, (const char *const[5]){"0", "n", "no", "false", "off"});
}

static void read_environment(void) {
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    abt.guard = abt_guard_mode_of(variable("ABT_STACK_OVERFLOW_CHECK", "ABT_ENV_STACK_OVERFLOW_CHECK"));
    /* As the original: a thread that fits on a default stack fits on one with a guard. */
    uint64_t guards = abt.guard != ABT_GUARD_NONE ? 2 * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
    abt.stack_size =
        number("ABT_THREAD_STACKSIZE", "ABT_ENV_THREAD_STACKSIZE", 16384 + guards, 512, UINT64_C(1) << 29);
    abt.sched_stack_size = number("ABT_SCHED_STACKSIZE", "ABT_ENV_SCHED_STACKSIZE", (4 << 20) + guards, 16384,
                                  UINT64_C(1) << 29);
    abt.event_freq = (uint32_t)number("ABT_SCHED_EVENT_FREQ", "ABT_ENV_SCHED_EVENT_FREQ", 50, 1, INT32_MAX);
    abt.sched_sleep = number("ABT_SCHED_SLEEP_NSEC", "ABT_ENV_SCHED_SLEEP_NSEC", 100, 0, UINT64_MAX);
    abt.max_streams = (uint32_t)number("ABT_MAX_NUM_XSTREAMS", "ABT_ENV_MAX_NUM_XSTREAMS",
                                       cpus > 0 ? (uint64_t)cpus : 1, 1, WORKERS_MAX);
    abt.sets_affinity = is_not_no(variable("ABT_SET_AFFINITY", "ABT_ENV_SET_AFFINITY"));
    abt.prints_config = is_yes(variable("ABT_PRINT_CONFIG", "ABT_ENV_PRINT_CONFIG"));
    abt.spin = 1000 * number("THRUM_ABT_SPIN", "THRUM_ABT_SPIN", 20, 0, 1000000);
}

/* What default threads get: more than they ask for, since it is address space only until it is touched. */
static size_t default_stack(void) {
    return abt.stack_size < 65536 ? 65536 : abt.stack_size;
}

static int start_core(void) {
    struct thrum_config config = {.workers = 1, .stack_size = default_stack()};
    abt_preempt_configure(&config.preempt);
    front_shape = (struct front_shape){.entry = abt_thread_entry,
                                       .function = offsetof(struct abt_thread, fn),
                                       .state = offsetof(struct abt_thread, state),
                                       .waits = ABT_THREAD_STATE_BLOCKED,
                                       .exits = abt_thread_exits,
                                       .must_return = abt_thread_must_return};
    int error = thrum_init(&config);
    if (error != 0)
        return error == ENOMEM ? ABT_ERR_MEM : ABT_ERR_SYS;
    if (thrum_pool_create_user(&abt.core_pool, &abt_core_ops, NULL) != 0) {
        thrum_fini();
        return ABT_ERR_MEM;
    }
    abt_preempt_begin();
    thrum_attr_init(&abt.attr);
    thrum_attr_set_pool(&abt.attr, abt.core_pool);
    return ABT_SUCCESS;
}

static void stop_core(void) {
    thrum_fini();
    abt.preempts = false;
    front_relieve = NULL;
    thrum_pool_destroy(abt.core_pool);
}

/* Descriptors that are kept for later use. */
static void drop_descriptors(void) {
    abt_thread_cache_flush();
    abt_spare_drop(NULL);
}

/* From here the main scheduler runs it. */
static void join_in(void) {
    struct abt_waiter waiter;
    abt.primary->unit = front_self();
    abt_preempt_hold(abt.primary->unit);
    front_set_primary(abt.core_pool, abt.primary);
    abt_wait_begin(&waiter);
    abt_wake(&waiter);
    abt_wait(&waiter);
}

static int start(void) {
    struct abt_sched *sched;
    abt.next_thread_id = abt.next_pool_id = 0;
    int error = abt_sched_new_basic(ABT_SCHED_DEFAULT, 0, NULL, ABT_SCHED_CONFIG_NULL, &sched);
    if (error != ABT_SUCCESS)
        return error;
    abt.primary = abt_thread_new(ABT_KIND_THREAD, sched->pools[0], NULL, NULL, NULL, true, &error);
    if (abt.primary != NULL) {
        abt.primary->flags = ABT_FLAG_NAMED | ABT_FLAG_PRIMARY;
        error = abt_stream_new(sched, 0, true, &abt.primary_stream);
        if (error == ABT_SUCCESS) {
            store_relaxed(&abt.is_on, true);
            join_in();
            return ABT_SUCCESS;
        }
        abt_thread_delete(abt.primary);
        abt.primary = NULL;
    }
    abt_sched_delete(sched);
    return error;
}

ABT_EXPORT int ABT_init(int argc, char **argv) {
    (void)argc, (void)argv;
    int error = ABT_SUCCESS;
    pthread_mutex_lock(&starting);
    bool is_first = abt.count == 0;
    if (is_first) {
        read_environment();
        error = start_core();
        if (error == ABT_SUCCESS && (error = start()) != ABT_SUCCESS) {
            stop_core();
            drop_descriptors();
        }
    }
    if (error == ABT_SUCCESS)
        abt.count++;
    pthread_mutex_unlock(&starting);
    if (error == ABT_SUCCESS && is_first && abt.prints_config)
        ABT_info_print_config(stdout);
    return error;
}

/* Those that are still there, which is a mistake of the program's, are made to end: the core waits for their workers. */
static void end_streams(void) {
    for (;;) {
        abt_lock(&abt.lock);
        struct abt_stream *stream = abt.streams;
        while (stream != NULL && stream->is_primary)
            stream = stream->next;
        abt_unlock(&abt.lock);
        if (stream == NULL)
            return;
        fetch_or_acq_rel(&stream->request, (uint32_t)ABT_STREAM_EXIT);
        abt_stream_end(stream);
        abt_stream_delete(stream);
    }
}

static void stop(void) {
    struct abt_thread *primary = abt.primary;
    abt_values_delete(primary);
    abt_thread_dissociate(primary); /* it waits as its worker's from here (wait.c), not in a pool */
    front_set_primary(NULL, NULL);
    abt_stream_end(abt.primary_stream);
    end_streams();
    abt_stream_delete(abt.primary_stream);
    store_relaxed(&abt.is_on, false);
    abt.primary = NULL;
    abt.primary_stream = NULL;
    stop_core();
    abt_thread_delete(primary);
    drop_descriptors();
}

/* Any thread may undo an ABT_init that was not the first. */
static bool is_last(uint32_t *count) {
    pthread_mutex_lock(&starting);
    *count = abt.count;
    if (*count > 1)
        abt.count--;
    pthread_mutex_unlock(&starting);
    return *count == 1;
}

ABT_EXPORT int ABT_finalize(void) {
    uint32_t count;
    if (!is_last(&count))
        return count > 1 ? ABT_SUCCESS : ABT_ERR_UNINITIALIZED;
    struct abt_thread *self = abt_self();
    ABT_CHECK(self != NULL, ABT_ERR_INV_XSTREAM);
    ABT_CHECK(abt_stream_here() == abt.primary_stream, ABT_ERR_INV_XSTREAM);
    ABT_CHECK(self->flags & ABT_FLAG_PRIMARY, ABT_ERR_INV_THREAD);
    stop();
    pthread_mutex_lock(&starting);
    abt.count--;
    pthread_mutex_unlock(&starting);
    return ABT_SUCCESS;
}

ABT_EXPORT int ABT_initialized(void) {
    return load_relaxed(&abt.is_on) ? ABT_SUCCESS : ABT_ERR_UNINITIALIZED;
}
