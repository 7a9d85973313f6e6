// SPDX-License-Identifier: Apache-2.0
//
// Row "cancel": cancellation works in a reused thread as in a new one, and nothing of it is passed on: not a request
// that was not acted on, not a state or type that the predecessor set, not the end by cancellation itself.

#include <semaphore.h>

#include "check.h"

static char trace[64];

static void note(void *name) {
    strcat(trace, name);
}

static void expect_trace(const char *expected) {
    CHECK(strcmp(trace, expected) == 0, "trace is \"%s\", expected \"%s\"", trace, expected);
    trace[0] = '\0';
}

static sem_t ready;

// Sleeps for four seconds at most: a lost cancellation becomes a failure, not a hang.
static void *sleep_in_cancellation_point(void *arg) {
    pthread_cleanup_push(note, (void *)"s");
    sem_post(&ready);
    for (int i = 0; i < 20; i++) {
        struct timespec time = {0, 200000000};
        nanosleep(&time, NULL);
    }
    pthread_cleanup_pop(0);
    return arg;
}

static void *burn(void *arg) {
    CHECK_OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
    sem_post(&ready);
    time_t start = time(NULL);
    while (time(NULL) - start < 5) {
    }
    return arg;
}

static void *check_normal(void *arg) {
    int state = -1, type = -1;
    CHECK_OK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state));
    CHECK_EQ(state, PTHREAD_CANCEL_ENABLE);
    CHECK_OK(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type));
    CHECK_EQ(type, PTHREAD_CANCEL_DEFERRED);
    pthread_testcancel();
    sleep_ms(1);
    return arg;
}

static void expect_normal_thread(void) {
    int value;
    void *result;
    run_thread_result(check_normal, &value, &result);
    CHECK(result == &value, "a thread that nobody cancelled did not end normally");
}

static void cancel_one(void *(*start)(void *)) {
    int64_t busy = busy_threads();
    struct run_arg run = {start, NULL, 0};
    pthread_t thread;
    void *result = NULL;
    CHECK_OK(pthread_create(&thread, NULL, run_start, &run));
    CHECK_OK(sem_wait(&ready));
    CHECK_OK(pthread_cancel(thread));
    CHECK_OK(pthread_join(thread, &result));
    CHECK(result == PTHREAD_CANCELED, "joined, but not as cancelled");
    wait_until_settled(busy);
}

static void cancel_in_reused_threads(void *(*start)(void *), const char *expected) {
    CHECK_SYS(sem_init(&ready, 0, 0));
    for (int i = 0; i < 4; i++) {
        expect_normal_thread();
        expect_normal_thread();
        cancel_one(start);
        expect_trace(expected);
    }
    cancel_one(start); // and right after one another
    cancel_one(start);
    const volatile struct thrum_cache_counters *c = counters();
    if (c)
        PREMISE(c->reused >= 4, "only %ju threads were reused", (uintmax_t)c->reused);
}

static void deferred(void) {
    cancel_in_reused_threads(sleep_in_cancellation_point, "s");
}

static void asynchronous(void) {
    cancel_in_reused_threads(burn, "");
}

static void *cancel_self(void *arg) {
    pthread_cleanup_push(note, (void *)"t");
    CHECK_OK(pthread_cancel(pthread_self()));
    pthread_testcancel();
    pthread_cleanup_pop(0);
    return arg;
}

// The kernel thread of a cancelled one is not used again.
static void cancelled_thread_retires(void) {
    pid_t zeroth = run_thread(do_nothing, NULL);
    void *result;
    pid_t first = run_thread_result(cancel_self, NULL, &result);
    CHECK(result == PTHREAD_CANCELED, "not cancelled");
    expect_trace("t");
    pid_t second = run_thread(check_normal, NULL);
    expect_reused(zeroth, first);
    expect_not_reused(first, second);
}

static void *ignore_cancellation(void *arg) {
    CHECK_OK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL));
    CHECK_OK(pthread_cancel(pthread_self()));
    pthread_testcancel();
    return arg;
}

// Requested, never acted on: ends with the thread, which ends with its value.
static void pending_request(void) {
    for (int i = 0; i < 3; i++) {
        run_thread(do_nothing, NULL);
        int value;
        void *result;
        run_thread_result(ignore_cancellation, &value, &result);
        CHECK(result == &value, "ended by a cancellation that was disabled");
        expect_normal_thread();
    }
}

static void *leave_disabled(void *arg) {
    CHECK_OK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL));
    return arg;
}

static void *leave_asynchronous(void *arg) {
    CHECK_OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
    return arg;
}

static void *exit_disabled(void *arg) {
    leave_disabled(NULL);
    leave_asynchronous(NULL);
    pthread_exit(arg);
}

static void settings_left(void *(*start)(void *)) {
    pid_t first = run_thread(start, NULL), second = run_thread(check_normal, NULL);
    run_thread(start, NULL);
    CHECK_SYS(sem_init(&ready, 0, 0));
    cancel_one(sleep_in_cancellation_point);
    expect_reused(first, second);
}

static void disabled_state_left(void) {
    settings_left(leave_disabled);
}

static void asynchronous_type_left(void) {
    settings_left(leave_asynchronous);
}

static void both_left_by_pthread_exit(void) {
    settings_left(exit_disabled);
}

static void *end_at_cancellation(void *arg) {
    for (int i = 0; i < 5000; i++) {
        pthread_testcancel();
        usleep(1000);
    }
    return arg;
}

// Cancelled as soon as it exists, perhaps before it runs.
static void cancelled_at_once(void) {
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        void *result = NULL;
        CHECK_OK(pthread_create(&thread, NULL, end_at_cancellation, NULL));
        CHECK_OK(pthread_cancel(thread));
        CHECK_OK(pthread_join(thread, &result));
        CHECK(result == PTHREAD_CANCELED, "round %d: not cancelled", i);
        if (i % 4 == 0)
            expect_normal_thread();
    }
}

static void *end_soon(void *arg) {
    for (volatile int i = 0; i < 2000; i++) {
    }
    pthread_testcancel();
    return arg;
}

// Cancelled while it ends: one or the other, and the next thread has nothing of it.
static void cancelled_while_ending(void) {
    for (uintptr_t i = 0; i < 500; i++) {
        pthread_t thread;
        void *result = NULL;
        CHECK_OK(pthread_create(&thread, NULL, end_soon, &result));
        for (volatile uintptr_t spin = 0; spin < i * 100; spin++) {
        }
        pthread_cancel(thread);
        void *joined = NULL;
        CHECK_OK(pthread_join(thread, &joined));
        CHECK(joined == PTHREAD_CANCELED || joined == &result, "round %d: neither cancelled nor ended",
              (int)i);
        expect_normal_thread();
    }
}

static pthread_t target;
static sem_t target_may_end;

static void *wait_to_end(void *arg) {
    while (sem_wait(&target_may_end) == -1) {
    }
    return arg;
}

static void *join_target(void *arg) {
    sem_post(&ready);
    pthread_join(target, NULL);
    return arg;
}

// pthread_join is a cancellation point; cancelled there, the target can still be joined.
static void cancelled_join(void) {
    CHECK_SYS(sem_init(&ready, 0, 0));
    CHECK_SYS(sem_init(&target_may_end, 0, 0));
    for (int i = 0; i < 3; i++) {
        int value;
        void *result = NULL;
        CHECK_OK(pthread_create(&target, NULL, wait_to_end, &value));
        pthread_t joiner;
        CHECK_OK(pthread_create(&joiner, NULL, join_target, NULL));
        CHECK_OK(sem_wait(&ready));
        if (i)
            sleep_ms(20);
        CHECK_OK(pthread_cancel(joiner));
        CHECK_OK(pthread_join(joiner, &result));
        CHECK(result == PTHREAD_CANCELED, "the joiner was not cancelled");
        CHECK_SYS(sem_post(&target_may_end));
        CHECK_OK(pthread_join(target, &result));
        CHECK(result == &value, "wrong value from the target");
    }
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void unlock_mutex(void *arg) {
    strcat(trace, "u");
    CHECK_OK(pthread_mutex_unlock(arg));
}

static void *wait_for_condition(void *arg) {
    CHECK_OK(pthread_mutex_lock(&mutex));
    pthread_cleanup_push(unlock_mutex, &mutex);
    sem_post(&ready);
    for (;;)
        pthread_cond_wait(&condition, &mutex);
    pthread_cleanup_pop(1);
    return arg;
}

static void in_a_condition_wait(void) {
    cancel_in_reused_threads(wait_for_condition, "u");
    CHECK_OK(pthread_mutex_trylock(&mutex));
}

static pthread_key_t key;

static void key_destructor(void *p) {
    strcat(trace, p);
}

static void *cancel_with_key(void *arg) {
    CHECK_OK(pthread_setspecific(key, "k"));
    return cancel_self(arg);
}

static void keys_are_destroyed(void) {
    CHECK_OK(pthread_key_create(&key, key_destructor));
    for (int i = 0; i < 3; i++) {
        run_thread(do_nothing, NULL);
        run_thread(cancel_with_key, NULL);
        expect_trace("tk");
    }
}

static void *cancel_in_cleanup(void *arg) {
    pthread_cleanup_push(note, (void *)"c");
    pthread_cancel(pthread_self());
    pthread_exit(arg);
    pthread_cleanup_pop(0);
    return NULL;
}

// pthread_exit with a request pending: it is the exit that counts.
static void exit_with_request_pending(void) {
    int value;
    for (int i = 0; i < 3; i++) {
        void *result;
        run_thread(do_nothing, NULL);
        run_thread_result(cancel_in_cleanup, &value, &result);
        CHECK(result == &value, "join did not give pthread_exit's value");
        expect_trace("c");
        expect_normal_thread();
    }
}

static const struct check_case cases[] = {
    {"deferred", deferred, FAILS_WHEN_SKIPPED},
    {"asynchronous", asynchronous, FAILS_WHEN_SKIPPED},
    {"cancelled-thread-retires", cancelled_thread_retires, FAILS_WHEN_SKIPPED},
    {"pending-request", pending_request, FAILS_WHEN_SKIPPED},
    {"disabled-state-left", disabled_state_left, FAILS_WHEN_SKIPPED},
    {"asynchronous-type-left", asynchronous_type_left, FAILS_WHEN_SKIPPED},
    {"both-left-by-pthread-exit", both_left_by_pthread_exit, FAILS_WHEN_SKIPPED},
    {"cancelled-at-once", cancelled_at_once, HOLDS_WHEN_SKIPPED},
    {"cancelled-while-ending", cancelled_while_ending, HOLDS_WHEN_SKIPPED},
    {"cancelled-join", cancelled_join, HOLDS_WHEN_SKIPPED},
    {"in-a-condition-wait", in_a_condition_wait, FAILS_WHEN_SKIPPED},
    {"keys-are-destroyed", keys_are_destroyed, HOLDS_WHEN_SKIPPED},
    {"exit-with-request-pending", exit_with_request_pending, FAILS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
