// SPDX-License-Identifier: Apache-2.0
//
// Row "end", the C half: cleanup handlers (which, in C without exceptions, are glibc's jump buffers rather than
// unwind tables), results, thrd_exit, a thousand ends in a row.

#include <threads.h>

#include "check.h"

static char trace[64];
static size_t trace_length;

static void note(void *name) {
    trace[trace_length++] = *(const char *)name;
}

static void expect_trace(const char *expected) {
    trace[trace_length] = '\0';
    CHECK(strcmp(trace, expected) == 0, "trace is \"%s\", expected \"%s\"", trace, expected);
    trace_length = 0;
}

__attribute__((noinline)) static void inner(void *value) {
    pthread_cleanup_push(note, (void *)"2");
    pthread_cleanup_push(note, (void *)"1");
    if (value)
        pthread_exit(value);
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
}

static void *exits(void *value) {
    pthread_cleanup_push(note, (void *)"3");
    inner(value);
    pthread_cleanup_pop(0);
    return NULL;
}

static void cleanup_handlers(void) {
    int values[2];
    pid_t tids[2];
    for (int i = 0; i < 2; i++) {
        void *result;
        tids[i] = run_thread_result(exits, &values[i], &result);
        expect_trace("123");
        CHECK(result == &values[i], "join gave another value than pthread_exit got");
    }
    expect_reused(tids[0], tids[1]);
}

static void *returns_inside(void *value) {
    inner(NULL);
    return value;
}

// Handlers that were popped do not run, neither at this thread's end nor at the next one's.
static void popped_handlers_stay_quiet(void) {
    pid_t first = run_thread(returns_inside, NULL);
    expect_trace("");
    int value;
    pid_t second = run_thread(exits, &value);
    expect_trace("123");
    pid_t third = run_thread(returns_inside, NULL);
    expect_trace("");
    expect_reused(first, second);
    expect_reused(second, third);
}

static pid_t c11_tid;

static int c11_exits(void *arg) {
    c11_tid = kernel_tid();
    pthread_cleanup_push(note, (void *)"c");
    if (arg)
        thrd_exit(*(int *)arg);
    pthread_cleanup_pop(0);
    return 0;
}

static void thrd_exit_runs_handlers(void) {
    pid_t tids[2];
    for (int i = 0; i < 2; i++) {
        int64_t busy = busy_threads();
        int value = -7 - i, result = 0;
        thrd_t thread;
        CHECK_EQ(thrd_create(&thread, c11_exits, &value), thrd_success);
        CHECK_EQ(thrd_join(thread, &result), thrd_success);
        wait_until_settled(busy);
        CHECK_EQ(result, -7 - i);
        expect_trace("c");
        tids[i] = c11_tid;
    }
    expect_reused(tids[0], tids[1]);
}

static void *returns(void *arg) {
    return arg;
}

static void *exits_plainly(void *arg) {
    pthread_exit(arg);
}

// Both ways to end, many times: every result is right, and no thread is lost.
static void a_thousand_ends(void) {
    const volatile struct thrum_cache_counters *c = counters();
    uint64_t reused = c ? c->reused : 0;
    for (uintptr_t i = 1; i <= 1000; i++) {
        void *result;
        run_thread_result(i % 2 ? returns : exits_plainly, (void *)i, &result);
        CHECK_EQ((uintptr_t)result, i);
    }
    if (c)
        PREMISE(c->reused - reused >= 990, "only %ju of 1000 were reused", (uintmax_t)(c->reused - reused));
}

// The kernel thread ends at once, without telling libc: it must not be reused, and its joiner is told.
static int raw_pause;

static void *exits_raw(void *tid) {
    *(pid_t *)tid = kernel_tid();
    if (raw_pause)
        sleep_ms(5); // the joiner waits already
    syscall(SYS_exit, 0);
    return tid;
}

static void raw_exit(void) {
    for (raw_pause = 0; raw_pause < 2; raw_pause++) {
        pid_t first = run_thread(do_nothing, NULL), raw = 0;
        run_thread(exits_raw, &raw);
        expect_reused(first, raw);
        for (int i = 0; i < 3; i++)
            expect_not_reused(raw, run_thread(do_nothing, NULL));
    }
}

static void raw_exit_detached(void) {
    for (int i = 0; i < 10; i++) {
        static volatile pid_t raw;
        char task[64];
        pthread_t thread;
        raw = 0;
        raw_pause = i % 2;
        CHECK_OK(pthread_create(&thread, NULL, exits_raw, (void *)&raw));
        CHECK_OK(pthread_detach(thread));
        for (int ms = 0; raw == 0 && ms < 5000; ms++)
            sleep_ms(1);
        snprintf(task, sizeof task, "/proc/self/task/%d", (int)raw);
        for (int ms = 0; access(task, F_OK) == 0 && ms < 5000; ms++)
            sleep_ms(1);
        CHECK(raw != 0 && access(task, F_OK) == -1, "kernel thread %d is still there", (int)raw);
        expect_not_reused(raw, run_thread(do_nothing, NULL));
    }
    wait_until_settled(0);
    CHECK_EQ(busy_threads(), 0);
}

static const struct check_case cases[] = {
    {"cleanup-handlers", cleanup_handlers, FAILS_WHEN_SKIPPED},
    {"popped-handlers-stay-quiet", popped_handlers_stay_quiet, FAILS_WHEN_SKIPPED},
    {"thrd-exit-runs-handlers", thrd_exit_runs_handlers, FAILS_WHEN_SKIPPED},
    {"a-thousand-ends", a_thousand_ends, HOLDS_WHEN_SKIPPED},
    {"raw-exit", raw_exit, HOLDS_WHEN_SKIPPED},
    {"raw-exit-detached", raw_exit_detached, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
