// SPDX-License-Identifier: Apache-2.0
//
// Without memory. Each function of the interface that allocates is called with its first, second, ... allocation failing, until one
// call has none left to fail. It returns ABT_ERR_MEM or, where a system call failed, ABT_ERR_SYS; it leaves no memory behind, and
// the objects as they were; and it succeeds afterwards. Allocations are malloc, calloc, aligned_alloc, mmap and pthread_create, of
// the library and of what it calls.
#include <abt.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHECK(condition, ...)                                                                                \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: not so: %s: ", __FILE__, __LINE__, #condition);                          \
            fprintf(stderr, __VA_ARGS__);                                                                    \
            fputc('\n', stderr);                                                                             \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)
#define OK(call) CHECK((call) == ABT_SUCCESS, "in the test itself")

// --- what fails ------------------------------------------------------------------------------------------------------

static long left;   // allocations until one fails; 0: none does
static bool failed; // one has
static long blocks;

static bool fails(void) {
    long now = __atomic_load_n(&left, __ATOMIC_RELAXED);
    if (now == 0 || __atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED) != 1)
        return false;
    __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
    errno = ENOMEM;
    return true;
}

static void *counted(void *block) {
    if (block != NULL)
        __atomic_fetch_add(&blocks, 1, __ATOMIC_RELAXED);
    return block;
}

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

void *malloc(size_t size) {
    return fails() ? NULL : counted(__libc_malloc(size));
}
void *calloc(size_t count, size_t size) {
    return fails() ? NULL : counted(__libc_calloc(count, size));
}
void *realloc(void *block, size_t size) {
    if (block == NULL)
        return malloc(size);
    return fails() ? NULL : __libc_realloc(block, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
    return fails() ? NULL : counted(__libc_memalign(alignment, size));
}
void free(void *block) {
    if (block != NULL)
        __atomic_fetch_sub(&blocks, 1, __ATOMIC_RELAXED);
    __libc_free(block);
}
void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    if (!(flags & MAP_FIXED) && fails())
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

static int (*real_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg) {
    return fails() ? EAGAIN : real_create(thread, attr, fn, arg);
}

// --- one call --------------------------------------------------------------------------------------------------------

enum { MOST = 400 };

static long faults;

// `undo` undoes a call that succeeded. `is_clean`, unless NULL, says whether a failed call has left its result as documented.
static void sweep(const char *name, int (*call)(void), void (*undo)(void), bool (*is_clean)(void)) {
    OK(call()); // what is kept for later use is there
    undo();
    for (long n = 1;; n++) {
        CHECK(n < MOST, "%s has no end", name);
        long before = __atomic_load_n(&blocks, __ATOMIC_RELAXED);
        failed = false;
        __atomic_store_n(&left, n, __ATOMIC_RELAXED);
        int error = call();
        __atomic_store_n(&left, 0, __ATOMIC_RELAXED);
        CHECK(error == ABT_SUCCESS || failed, "%s fails by itself: %d", name, error);
        CHECK(error == ABT_SUCCESS || error == ABT_ERR_MEM || error == ABT_ERR_SYS, "%s, allocation %ld: %d",
              name, n, error);
        if (error == ABT_SUCCESS)
            undo(); // it can do without, or there was none to fail
        else
            CHECK(is_clean == NULL || is_clean(), "%s, allocation %ld: what it returns", name, n);
        long after = __atomic_load_n(&blocks, __ATOMIC_RELAXED);
        CHECK(after <= before, "%s, allocation %ld: %ld blocks are left, error %d", name, n, after - before,
              error);
        if (!failed)
            break;
        faults++;
    }
    OK(call());
    undo();
}

// --- objects that are created and freed ------------------------------------------------------------------------------

static ABT_pool pool;
static ABT_xstream stream;

#define OBJECT(name, type, null, create, destroy)                                                            \
    static type name;                                                                                        \
    static int name##_create(void) {                                                                         \
        name = (type)(uintptr_t)64;                                                                          \
        return create;                                                                                       \
    }                                                                                                        \
    static void name##_destroy(void) {                                                                       \
        OK(destroy);                                                                                         \
    }                                                                                                        \
    __attribute__((unused)) static bool name##_is_null(void) {                                               \
        return name == null;                                                                                 \
    }
#define SWEEP(name)       sweep(#name, name##_create, name##_destroy, name##_is_null)
#define SWEEP_ERROR(name) sweep(#name, name##_create, name##_destroy, NULL) // its result is not said

static void nothing(void *arg) {
    (void)arg;
}

OBJECT(mutex, ABT_mutex, ABT_MUTEX_NULL, ABT_mutex_create(&mutex), ABT_mutex_free(&mutex))
OBJECT(mutex_attr, ABT_mutex_attr, ABT_MUTEX_ATTR_NULL, ABT_mutex_attr_create(&mutex_attr),
       ABT_mutex_attr_free(&mutex_attr))
OBJECT(cond, ABT_cond, ABT_COND_NULL, ABT_cond_create(&cond), ABT_cond_free(&cond))
OBJECT(rwlock, ABT_rwlock, ABT_RWLOCK_NULL, ABT_rwlock_create(&rwlock), ABT_rwlock_free(&rwlock))
OBJECT(eventual, ABT_eventual, ABT_EVENTUAL_NULL, ABT_eventual_create(100, &eventual),
       ABT_eventual_free(&eventual))
OBJECT(future, ABT_future, ABT_FUTURE_NULL, ABT_future_create(3, NULL, &future), ABT_future_free(&future))
OBJECT(barrier, ABT_barrier, ABT_BARRIER_NULL, ABT_barrier_create(2, &barrier), ABT_barrier_free(&barrier))
OBJECT(stream_barrier, ABT_xstream_barrier, ABT_XSTREAM_BARRIER_NULL,
       ABT_xstream_barrier_create(2, &stream_barrier), ABT_xstream_barrier_free(&stream_barrier))
OBJECT(clock_timer, ABT_timer, ABT_TIMER_NULL, ABT_timer_create(&clock_timer), ABT_timer_free(&clock_timer))
OBJECT(key, ABT_key, ABT_KEY_NULL, ABT_key_create(NULL, &key), ABT_key_free(&key))
OBJECT(attr, ABT_thread_attr, ABT_THREAD_ATTR_NULL, ABT_thread_attr_create(&attr),
       ABT_thread_attr_free(&attr))
OBJECT(basic_pool, ABT_pool, ABT_POOL_NULL,
       ABT_pool_create_basic(ABT_POOL_FIFO, ABT_POOL_ACCESS_MPMC, ABT_FALSE, &basic_pool),
       ABT_pool_free(&basic_pool))
OBJECT(pool_config, ABT_pool_config, ABT_POOL_CONFIG_NULL, ABT_pool_config_create(&pool_config),
       ABT_pool_config_free(&pool_config))
OBJECT(sched_config, ABT_sched_config, ABT_SCHED_CONFIG_NULL,
       ABT_sched_config_create(&sched_config, ABT_sched_basic_freq, 7, ABT_sched_config_automatic, 0,
                               ABT_sched_config_var_end),
       ABT_sched_config_free(&sched_config))
OBJECT(basic_sched, ABT_sched, ABT_SCHED_NULL,
       ABT_sched_create_basic(ABT_SCHED_PRIO, 0, NULL, ABT_SCHED_CONFIG_NULL, &basic_sched),
       ABT_sched_free(&basic_sched))
OBJECT(new_stream, ABT_xstream, ABT_XSTREAM_NULL, ABT_xstream_create(ABT_SCHED_NULL, &new_stream),
       ABT_xstream_free(&new_stream))
OBJECT(ranked_stream, ABT_xstream, ABT_XSTREAM_NULL,
       ABT_xstream_create_with_rank(ABT_SCHED_NULL, 5, &ranked_stream), ABT_xstream_free(&ranked_stream))
OBJECT(basic_stream, ABT_xstream, ABT_XSTREAM_NULL,
       ABT_xstream_create_basic(ABT_SCHED_RANDWS, 0, NULL, ABT_SCHED_CONFIG_NULL, &basic_stream),
       ABT_xstream_free(&basic_stream))
OBJECT(thread, ABT_thread, ABT_THREAD_NULL,
       ABT_thread_create(pool, nothing, NULL, ABT_THREAD_ATTR_NULL, &thread), ABT_thread_free(&thread))
OBJECT(stream_thread, ABT_thread, ABT_THREAD_NULL,
       ABT_thread_create_on_xstream(stream, nothing, NULL, ABT_THREAD_ATTR_NULL, &stream_thread),
       ABT_thread_free(&stream_thread))
OBJECT(thread_of_to, ABT_thread, ABT_THREAD_NULL,
       ABT_thread_create_to(pool, nothing, NULL, ABT_THREAD_ATTR_NULL, &thread_of_to),
       ABT_thread_free(&thread_of_to))
OBJECT(task, ABT_task, ABT_TASK_NULL, ABT_task_create(pool, nothing, NULL, &task), ABT_task_free(&task))

// --- of others -------------------------------------------------------------------------------------------------------

OBJECT(mutex_with_attr, ABT_mutex, ABT_MUTEX_NULL, ABT_mutex_create_with_attr(mutex_attr, &mutex_with_attr),
       ABT_mutex_free(&mutex_with_attr))
OBJECT(attr_of_mutex, ABT_mutex_attr, ABT_MUTEX_ATTR_NULL, ABT_mutex_get_attr(mutex, &attr_of_mutex),
       ABT_mutex_attr_free(&attr_of_mutex))
OBJECT(timer_copy, ABT_timer, ABT_TIMER_NULL, ABT_timer_dup(clock_timer, &timer_copy),
       ABT_timer_free(&timer_copy))
OBJECT(attr_of_thread, ABT_thread_attr, ABT_THREAD_ATTR_NULL, ABT_thread_get_attr(thread, &attr_of_thread),
       ABT_thread_attr_free(&attr_of_thread))

static int set_in_sched_config(void) {
    int value = 3;
    return ABT_sched_config_set(sched_config, 11, ABT_SCHED_CONFIG_INT, &value);
}
static void take_from_sched_config(void) {
    OK(ABT_sched_config_set(sched_config, 11, ABT_SCHED_CONFIG_INT, NULL));
}
static int set_in_pool_config(void) {
    int value = 3;
    return ABT_pool_config_set(pool_config, 11, ABT_POOL_CONFIG_INT, &value);
}
static void take_from_pool_config(void) {
    OK(ABT_pool_config_set(pool_config, 11, ABT_POOL_CONFIG_INT, NULL));
}

// A value of a thread is there until that is freed.
static ABT_thread with_value;
static int set_value(void) {
    void *value;
    int error = ABT_thread_set_specific(with_value, key, &with_value);
    OK(ABT_thread_get_specific(with_value, key, &value));
    CHECK((value == &with_value) == (error == ABT_SUCCESS), "its value");
    return error;
}
static void begin_value(void) {
    OK(ABT_thread_create(pool, nothing, NULL, ABT_THREAD_ATTR_NULL, &with_value));
    OK(ABT_thread_join(with_value));
}
static void renew_value(void) {
    OK(ABT_thread_free(&with_value));
    begin_value();
}

static int print_streams(void) {
    static FILE *null;
    if (null == NULL)
        setvbuf(null = fopen("/dev/null", "w"), NULL, _IONBF, 0);
    int error = ABT_info_print_all_xstreams(null);
    int other = ABT_info_print_thread_stacks_in_pool(null, pool);
    return error != ABT_SUCCESS ? error : other;
}
static void no_undo(void) {}

// A thread that gets its stack when it first runs: without memory it waits until there is some.
static int run_one_with_a_stack(void) {
    static size_t size = 1 << 16;
    ABT_thread_attr with_size;
    int error = ABT_thread_attr_create(&with_size);
    if (error != ABT_SUCCESS)
        return error;
    OK(ABT_thread_attr_set_stacksize(with_size, size += 4096)); // none like it is kept
    ABT_thread one;
    error = ABT_thread_create(pool, nothing, NULL, with_size, &one);
    OK(ABT_thread_attr_free(&with_size));
    if (error == ABT_SUCCESS)
        OK(ABT_thread_free(&one));
    return error;
}

// --- streams that have ended -----------------------------------------------------------------------------------------

static ABT_xstream ended;
static int revive(void) {
    int error = ABT_xstream_revive(ended);
    ABT_xstream_state state;
    OK(ABT_xstream_get_state(ended, &state));
    CHECK((state == ABT_XSTREAM_STATE_RUNNING) == (error == ABT_SUCCESS), "state %d after error %d",
          (int)state, error);
    return error;
}
static void join_revived(void) {
    OK(ABT_xstream_join(ended));
}
static int set_sched(void) {
    return ABT_xstream_set_main_sched(ended, ABT_SCHED_NULL);
}
static int set_basic_sched(void) {
    return ABT_xstream_set_main_sched_basic(ended, ABT_SCHED_PRIO, 0, NULL);
}

// --- pools and schedulers of the program's ----------------------------------------------------------------------------

static ABT_pool theirs;
static ABT_thread stack_of_theirs[8];
static int in_theirs, units;

static ABT_unit create_unit(ABT_pool in, ABT_thread of) {
    (void)in;
    units++;
    return (ABT_unit)(void *)of;
}
static void free_unit(ABT_pool in, ABT_unit unit) {
    (void)in, (void)unit;
    units--;
}
static ABT_bool is_empty(ABT_pool in) {
    (void)in;
    return in_theirs == 0;
}
static ABT_thread pop(ABT_pool in, ABT_pool_context context) {
    (void)in, (void)context;
    return in_theirs > 0 ? stack_of_theirs[--in_theirs] : ABT_THREAD_NULL;
}
static void push(ABT_pool in, ABT_unit unit, ABT_pool_context context) {
    (void)in, (void)context;
    stack_of_theirs[in_theirs++] = (ABT_thread)(void *)unit;
}
static void push_many(ABT_pool in, const ABT_unit *some, size_t count, ABT_pool_context context) {
    for (size_t i = 0; i < count; i++)
        push(in, some[i], context);
}

static ABT_pool_user_def def;
OBJECT(user_def, ABT_pool_user_def, ABT_POOL_USER_DEF_NULL,
       ABT_pool_user_def_create(create_unit, free_unit, is_empty, pop, push, &user_def),
       ABT_pool_user_def_free(&user_def))
OBJECT(user_pool, ABT_pool, ABT_POOL_NULL, ABT_pool_create(def, ABT_POOL_CONFIG_NULL, &user_pool),
       ABT_pool_free(&user_pool))

static void run_theirs(void) {
    ABT_thread next;
    while ((next = pop(theirs, 0)) != ABT_THREAD_NULL)
        OK(ABT_self_schedule(next, ABT_POOL_NULL));
}
OBJECT(unit_thread, ABT_thread, ABT_THREAD_NULL,
       ABT_thread_create(theirs, nothing, NULL, ABT_THREAD_ATTR_NULL, &unit_thread),
       (run_theirs(), ABT_thread_free(&unit_thread)))

static ABT_thread moved[3];
static int push_threads(void) {
    int error = ABT_pool_push_threads(theirs, moved, 3);
    CHECK(error == ABT_SUCCESS || in_theirs == 0, "%d are in the pool", in_theirs);
    for (int i = 0; i < 3 && error != ABT_SUCCESS; i++)
        OK(ABT_thread_set_associated_pool(moved[i], pool));
    return error;
}
static void take_back(void) {
    in_theirs = 0;
    for (int i = 0; i < 3; i++)
        OK(ABT_thread_set_associated_pool(moved[i], pool));
}
static int associate(void) {
    return ABT_thread_set_associated_pool(moved[0], theirs);
}
static void dissociate(void) {
    OK(ABT_thread_set_associated_pool(moved[0], pool));
}
static int revive_into_theirs(void) {
    return ABT_thread_revive(theirs, nothing, NULL, &moved[0]);
}
static void run_revived(void) {
    run_theirs();
    OK(ABT_thread_join(moved[0]));
    OK(ABT_thread_set_associated_pool(moved[0], pool));
}

static void run_nothing(ABT_sched sched) {
    (void)sched;
}
static ABT_sched_def own_sched_def = {.type = ABT_SCHED_TYPE_ULT, .run = run_nothing};
OBJECT(own_sched, ABT_sched, ABT_SCHED_NULL,
       ABT_sched_create(&own_sched_def, 2, NULL, ABT_SCHED_CONFIG_NULL, &own_sched),
       ABT_sched_free(&own_sched))

static ABT_sched stacked;
static int add_sched(void) {
    return ABT_pool_add_sched(pool, stacked);
}
static void run_added(void) {
    while (ABT_sched_free(&stacked) != ABT_SUCCESS)
        ABT_thread_yield();
    OK(ABT_sched_create(&own_sched_def, 1, NULL, ABT_SCHED_CONFIG_NULL, &stacked));
}

// --- the library itself ----------------------------------------------------------------------------------------------

static int init(void) {
    int error = ABT_init(0, NULL);
    CHECK((ABT_initialized() == ABT_SUCCESS) == (error == ABT_SUCCESS), "error %d", error);
    return error;
}
static void finalize(void) {
    OK(ABT_finalize());
}

static void of_the_program(void) {
    OK(ABT_pool_user_def_create(create_unit, free_unit, is_empty, pop, push, &def));
    OK(ABT_pool_user_def_set_push_many(def, push_many));
    OK(ABT_pool_create(def, ABT_POOL_CONFIG_NULL, &theirs));
    for (int i = 0; i < 3; i++) {
        OK(ABT_thread_create(pool, nothing, NULL, ABT_THREAD_ATTR_NULL, &moved[i]));
        OK(ABT_thread_join(moved[i]));
    }
    SWEEP(user_def);
    SWEEP(user_pool);
    SWEEP(unit_thread);
    sweep("push_threads", push_threads, take_back, NULL);
    sweep("associate", associate, dissociate, NULL);
    sweep("revive_into_theirs", revive_into_theirs, run_revived, NULL);
    CHECK(units == 0, "%d units are left", units);
    SWEEP(own_sched);
    OK(ABT_sched_create(&own_sched_def, 1, NULL, ABT_SCHED_CONFIG_NULL, &stacked));
    sweep("add_sched", add_sched, run_added, NULL);
    OK(ABT_sched_free(&stacked));
    for (int i = 0; i < 3; i++)
        OK(ABT_thread_free(&moved[i]));
    OK(ABT_pool_free(&theirs));
    OK(ABT_pool_user_def_free(&def));
}

static void of_streams(void) {
    SWEEP(basic_sched);
    SWEEP(new_stream);
    SWEEP(ranked_stream);
    SWEEP(basic_stream);
    OK(ABT_xstream_create(ABT_SCHED_NULL, &ended));
    OK(ABT_xstream_join(ended));
    sweep("revive", revive, join_revived, NULL);
    sweep("set_sched", set_sched, no_undo, NULL);
    sweep("set_basic_sched", set_basic_sched, no_undo, NULL);
    OK(ABT_xstream_free(&ended));
}

static void of_objects(void) {
    SWEEP(mutex);
    SWEEP(mutex_attr);
    SWEEP(cond);
    SWEEP(rwlock);
    SWEEP(eventual);
    SWEEP(future);
    SWEEP(barrier);
    SWEEP(stream_barrier);
    SWEEP(clock_timer);
    SWEEP_ERROR(key);
    SWEEP(attr);
    SWEEP(basic_pool);
    SWEEP(pool_config);
    SWEEP(sched_config);
}

static void of_threads(void) {
    SWEEP(thread);
    SWEEP(stream_thread);
    SWEEP_ERROR(thread_of_to);
    SWEEP(task);
    sweep("run_one_with_a_stack", run_one_with_a_stack, no_undo, NULL);
}

static void of_what_is_there(void) {
    OK(mutex_create());
    OK(mutex_attr_create());
    OK(clock_timer_create());
    OK(key_create());
    OK(thread_create());
    OK(pool_config_create());
    OK(sched_config_create());
    begin_value();
    SWEEP(mutex_with_attr);
    SWEEP(attr_of_mutex);
    SWEEP(timer_copy);
    SWEEP_ERROR(attr_of_thread);
    sweep("set_value", set_value, renew_value, NULL);
    sweep("set_in_sched_config", set_in_sched_config, take_from_sched_config, NULL);
    sweep("set_in_pool_config", set_in_pool_config, take_from_pool_config, NULL);
    sweep("print_streams", print_streams, no_undo, NULL);
    OK(ABT_thread_free(&with_value));
    sched_config_destroy();
    pool_config_destroy();
    thread_destroy();
    key_destroy();
    clock_timer_destroy();
    mutex_attr_destroy();
    mutex_destroy();
}

int main(void) {
    *(void **)&real_create = dlsym(RTLD_NEXT, "pthread_create");
    sweep("init", init, finalize, NULL);
    OK(ABT_init(0, NULL));
    OK(ABT_xstream_self(&stream));
    OK(ABT_xstream_get_main_pools(stream, 1, &pool));
    of_objects();
    of_threads();
    of_what_is_there();
    of_streams();
    of_the_program();
    OK(ABT_finalize());
    printf("%ld allocations failed\n", faults);
    return 0;
}
