// SPDX-License-Identifier: Apache-2.0
//
// Row last-thread: where main has called pthread_exit, the process ends, with code 0 and its exit handlers, when its
// last thread does; idle threads do not keep it.
#include "child.h"

enum { SECONDS = 4, CODE_OF_HANDLER = 0 };

static int handler_pipe[2];

static void at_exit(void) {
    if (write(handler_pipe[1], "h", 1) != 1)
        _exit(9);
}

// Runs main's part in a child process: it must end with code 0, its exit handler once.
static void ends_well(void (*run)(void)) {
    char heard[4];
    CHECK_SYS(pipe(handler_pipe));
    expect_exit(child_status(run, SECONDS), CODE_OF_HANDLER);
    CHECK_SYS(close(handler_pipe[1]));
    CHECK(read(handler_pipe[0], heard, sizeof heard) == 1, "the exit handler did not run once");
    CHECK_SYS(close(handler_pipe[0]));
}

static void *sleep_a_little(void *arg) {
    sleep_ms(30);
    return arg;
}

static void create(void *(*start)(void *), void *arg, int detached) {
    pthread_attr_t attr;
    pthread_t thread;
    CHECK_OK(pthread_attr_init(&attr));
    CHECK_OK(pthread_attr_setdetachstate(&attr, detached));
    CHECK_OK(pthread_create(&thread, &attr, start, arg));
    CHECK_OK(pthread_attr_destroy(&attr));
}

// ---- the forms it takes -------------------------------------------------------------------------------------------

static void only_main(void) {
    atexit(at_exit);
    pthread_exit(NULL);
}
static void only_idle_ones(void) {
    atexit(at_exit);
    warm_threads(4);
    pthread_exit(NULL);
}
static void one_thread(void) {
    atexit(at_exit);
    create(sleep_a_little, NULL, PTHREAD_CREATE_JOINABLE);
    pthread_exit(NULL);
}
static void one_detached(void) {
    atexit(at_exit);
    warm_threads(4);
    create(sleep_a_little, NULL, PTHREAD_CREATE_DETACHED);
    pthread_exit(NULL);
}
static void one_reused(void) {
    atexit(at_exit);
    warm_threads(4);
    create(sleep_a_little, NULL, PTHREAD_CREATE_JOINABLE);
    pthread_exit(NULL);
}
static void several_at_once(void) {
    atexit(at_exit);
    warm_threads(4);
    for (int i = 0; i < 12; i++)
        create(sleep_a_little, NULL, i % 2);
    pthread_exit(NULL);
}

static void *chain(void *left) {
    if ((intptr_t)left > 0)
        create(chain, (void *)((intptr_t)left - 1), (intptr_t)left % 2);
    return NULL;
}
static void each_creates_the_next(void) {
    atexit(at_exit);
    create(chain, (void *)200, PTHREAD_CREATE_DETACHED);
    create(chain, (void *)201, PTHREAD_CREATE_DETACHED);
    pthread_exit(NULL);
}

// A thread with a stack of its own is of another kind than those that are idle.
static char stack[256 * 1024] __attribute__((aligned(4096)));
static void create_on_user_stack(void) {
    pthread_attr_t attr;
    pthread_t thread;
    CHECK_OK(pthread_attr_init(&attr));
    CHECK_OK(pthread_attr_setstack(&attr, stack, sizeof stack));
    CHECK_OK(pthread_create(&thread, &attr, sleep_a_little, NULL));
}
static void user_stack_last(void) {
    atexit(at_exit);
    warm_threads(4);
    create_on_user_stack();
    pthread_exit(NULL);
}
static void *sleep_longer(void *arg) {
    sleep_ms(90);
    return arg;
}
static void user_stack_first(void) {
    atexit(at_exit);
    warm_threads(4);
    create_on_user_stack();
    create(sleep_longer, NULL, PTHREAD_CREATE_DETACHED);
    pthread_exit(NULL);
}

static void *exit_thread(void *arg) {
    pthread_exit(arg);
}
static void ends_by_pthread_exit(void) {
    atexit(at_exit);
    warm_threads(4);
    for (int i = 0; i < 4; i++)
        create(exit_thread, NULL, i % 2);
    pthread_exit(NULL);
}

static void *wait_for_cancellation(void *arg) {
    for (;;)
        pause();
    return arg;
}
static void *cancel_other(void *other) {
    sleep_ms(20);
    CHECK_OK(pthread_cancel(*(pthread_t *)other));
    return NULL;
}
static void last_is_cancelled(void) {
    static pthread_t victim;
    atexit(at_exit);
    warm_threads(4);
    CHECK_OK(pthread_create(&victim, NULL, wait_for_cancellation, NULL));
    create(cancel_other, &victim, PTHREAD_CREATE_DETACHED);
    pthread_exit(NULL);
}

// A thread of the cache that retires (it made a child process) is the last.
static void *fork_and_end(void *arg) {
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    expect_exit(wait_child(pid), 0);
    return arg;
}
static void last_retires(void) {
    atexit(at_exit);
    warm_threads(4);
    create(fork_and_end, NULL, PTHREAD_CREATE_DETACHED);
    pthread_exit(NULL);
}

#define FORM(name)                                                                                           \
    static void name##_case(void) {                                                                          \
        ends_well(name);                                                                                     \
    }
FORM(only_main)
FORM(only_idle_ones)
FORM(one_thread)
FORM(one_detached)
FORM(one_reused)
FORM(several_at_once)
FORM(each_creates_the_next)
FORM(user_stack_last)
FORM(user_stack_first)
FORM(ends_by_pthread_exit)
FORM(last_is_cancelled)
FORM(last_retires)

// The same in the test's own process: started by exec and not by fork.
static void without_fork(void) {
    warm_threads(4);
    create(sleep_a_little, NULL, PTHREAD_CREATE_JOINABLE);
    pthread_exit(NULL);
}

static const struct check_case cases[] = {
    {"only_main", only_main_case, HOLDS_WHEN_SKIPPED},
    {"only_idle_ones", only_idle_ones_case, FAILS_WHEN_SKIPPED},
    {"one_thread", one_thread_case, FAILS_WHEN_SKIPPED},
    {"one_detached", one_detached_case, FAILS_WHEN_SKIPPED},
    {"one_reused", one_reused_case, FAILS_WHEN_SKIPPED},
    {"several_at_once", several_at_once_case, FAILS_WHEN_SKIPPED},
    {"each_creates_the_next", each_creates_the_next_case, FAILS_WHEN_SKIPPED},
    {"user_stack_last", user_stack_last_case, FAILS_WHEN_SKIPPED},
    {"user_stack_first", user_stack_first_case, FAILS_WHEN_SKIPPED},
    {"ends_by_pthread_exit", ends_by_pthread_exit_case, FAILS_WHEN_SKIPPED},
    {"last_is_cancelled", last_is_cancelled_case, FAILS_WHEN_SKIPPED},
    {"last_retires", last_retires_case, FAILS_WHEN_SKIPPED},
    {"without_fork", without_fork, FAILS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
