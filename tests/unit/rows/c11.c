// SPDX-License-Identifier: Apache-2.0
//
// Row c11: thrd_create, thrd_join, thrd_detach, thrd_exit and tss_*: results, errors, destructors; on threads of the
// cache, and mixed with pthreads.
#include <threads.h>

#include "child.h"

enum { IDLE = 3, ROUNDS = 20 };

struct c11_run {
    pid_t tid;
    int value;
};

static int give_value(void *p) {
    struct c11_run *run = p;
    run->tid = kernel_tid();
    return run->value;
}

static pid_t run_c11(int (*start)(void *), int value) {
    struct c11_run run = {0, value};
    thrd_t thread;
    int result = -1;
    int64_t busy = busy_threads();
    CHECK_EQ(thrd_create(&thread, start, &run), thrd_success);
    CHECK_EQ(thrd_join(thread, &result), thrd_success);
    CHECK_EQ(result, value);
    wait_until_settled(busy);
    return run.tid;
}

// Every int comes through.
static void results(void) {
    const int values[] = {0, 1, -1, 42, 0x7fffffff, -0x7fffffff - 1};
    for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++)
        run_c11(give_value, values[i]);
}

static int leave(void *p) {
    struct c11_run *run = p;
    run->tid = kernel_tid();
    thrd_exit(run->value);
}
static void exits(void) {
    const int values[] = {0, 1, -1, 42, 0x7fffffff, -0x7fffffff - 1};
    for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++)
        run_c11(leave, values[i]);
}

// The cache serves C11 threads, from the same idle ones.
static void reused(void) {
    if (!under_thrum())
        return;
    pid_t first = run_c11(give_value, 1);
    CHECK(run_c11(give_value, 2) == first, "two C11 threads are two kernel threads");
    CHECK(run_thread(do_nothing, NULL) == first, "a pthread after a C11 thread is another kernel thread");
    CHECK(run_c11(leave, 3) == first, "a C11 thread after a pthread is another kernel thread");
}

static int compare_self(void *p) {
    return thrd_equal(*(thrd_t *)p, thrd_current()) != 0;
}
static int wait_and_compare(void *p) {
    sleep_ms(10);
    return compare_self(p);
}
static void identity(void) {
    for (int i = 0; i < 3; i++) {
        thrd_t thread;
        int equal = 0;
        CHECK_EQ(thrd_create(&thread, wait_and_compare, &thread), thrd_success);
        CHECK_EQ(thrd_join(thread, &equal), thrd_success);
        CHECK(equal, "thrd_current is not what thrd_create gave");
    }
}

static int detached_ends;
static int count_end(void *arg) {
    (void)arg;
    __atomic_fetch_add(&detached_ends, 1, __ATOMIC_RELEASE);
    return 0;
}
static int detach_itself(void *arg) {
    CHECK_EQ(thrd_detach(thrd_current()), thrd_success);
    return count_end(arg);
}
static void detach(void) {
    warm_threads(IDLE);
    for (int i = 0; i < ROUNDS; i++) {
        thrd_t thread;
        CHECK_EQ(thrd_create(&thread, i % 2 ? count_end : detach_itself, NULL), thrd_success);
        if (i % 2)
            CHECK_EQ(thrd_detach(thread), thrd_success);
    }
    for (int i = 0; i < 5000 && __atomic_load_n(&detached_ends, __ATOMIC_ACQUIRE) < ROUNDS; i++)
        sleep_ms(1);
    CHECK_EQ(detached_ends, ROUNDS);
}

static int join_itself(void *arg) {
    (void)arg;
    return thrd_join(thrd_current(), NULL);
}
static void errors(void) {
    warm_threads(IDLE);
    thrd_t thread;
    int result = -1;
    CHECK_EQ(thrd_create(&thread, join_itself, NULL), thrd_success);
    CHECK_EQ(thrd_join(thread, &result), thrd_success);
    CHECK_EQ(result, thrd_error);
}

// tss_t: a value per logical thread, destroyed at its end by return and by thrd_exit.
static tss_t tss;
static int destroyed;
static void destroy(void *value) {
    CHECK(value == &tss, "the destructor got %p", value);
    __atomic_fetch_add(&destroyed, 1, __ATOMIC_RELAXED);
}
static int use_tss(void *p) {
    struct c11_run *run = p;
    run->tid = kernel_tid();
    CHECK(tss_get(tss) == NULL, "a new thread finds the value of a former one");
    CHECK_EQ(tss_set(tss, &tss), thrd_success);
    if (run->value % 2)
        thrd_exit(run->value);
    return run->value;
}
static void thread_specific(void) {
    CHECK_EQ(tss_create(&tss, destroy), thrd_success);
    for (int i = 0; i < ROUNDS; i++) {
        run_c11(use_tss, i);
        CHECK_EQ(destroyed, i + 1);
    }
    tss_delete(tss);
}

static int look_at_foreign_key(void *p) {
    CHECK(pthread_getspecific(*(pthread_key_t *)p) == NULL, "a new thread finds the value of a former one");
    return 0;
}
static void *set_foreign_key(void *p) {
    CHECK_OK(pthread_setspecific(*(pthread_key_t *)p, p));
    return NULL;
}
static void mixed_keys(void) {
    pthread_key_t key;
    CHECK_OK(pthread_key_create(&key, NULL));
    for (int i = 0; i < 5; i++) {
        thrd_t thread;
        run_thread(set_foreign_key, &key);
        CHECK_EQ(thrd_create(&thread, look_at_foreign_key, &key), thrd_success);
        CHECK_EQ(thrd_join(thread, NULL), thrd_success);
    }
}

// thrd_t is pthread_t in glibc, and programs mix the two.
static void *leave_pointer(void *arg) {
    pthread_exit(arg);
}
static void mixed_joins(void) {
    for (int i = 1; i < 10; i++) {
        struct c11_run run = {0, i};
        thrd_t c11;
        void *result;
        CHECK_EQ(thrd_create(&c11, give_value, &run), thrd_success);
        CHECK_OK(pthread_join(c11, &result));
        CHECK_EQ((int)(intptr_t)result, i);
        pthread_t posix;
        int value = -1;
        CHECK_OK(pthread_create(&posix, NULL, leave_pointer, (void *)(intptr_t)i));
        CHECK_EQ(thrd_join(posix, &value), thrd_success);
        CHECK_EQ(value, i);
    }
}

static const struct check_case cases[] = {
    {"results", results, HOLDS_WHEN_SKIPPED},
    {"exits", exits, HOLDS_WHEN_SKIPPED},
    {"reused", reused, FAILS_WHEN_SKIPPED},
    {"identity", identity, HOLDS_WHEN_SKIPPED},
    {"detach", detach, HOLDS_WHEN_SKIPPED},
    {"errors", errors, HOLDS_WHEN_SKIPPED},
    {"thread_specific", thread_specific, HOLDS_WHEN_SKIPPED},
    {"mixed_keys", mixed_keys, HOLDS_WHEN_SKIPPED},
    {"mixed_joins", mixed_joins, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
