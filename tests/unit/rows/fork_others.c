// SPDX-License-Identifier: Apache-2.0
//
// Row fork: the fork handlers of a library that was there before the cache (it is linked with fork-handler-module.c), and
// three hundred forks by threads while others create threads as fast as they can.
#include "child.h"

enum { SECONDS = 8, IDLE = 6, CODE = 21, FORKERS = 3, CHURNERS = 2, FORKS = 300 };

extern int fork_handler_runs;

// In the child: before the fork and after it.
static int runs_before;
static void check_runs(void) {
    CHECK_EQ(fork_handler_runs, runs_before + 2);
    run_together(IDLE);
    exit(CODE);
}
static void *fork_with_handlers(void *arg) {
    runs_before = fork_handler_runs;
    expect_exit(child_status(check_runs, SECONDS), CODE);
    CHECK_EQ(fork_handler_runs, runs_before + 2);
    return arg;
}
static void handlers_of_a_library(void) {
    warm_threads(IDLE);
    for (int i = 0; i < 5; i++) {
        fork_with_handlers(NULL);
        run_thread(fork_with_handlers, NULL);
    }
}

static int forks, over;
static void work_a_little(void) {
    for (intptr_t i = 1; i <= 3; i++) {
        void *result;
        run_thread_result(do_nothing, (void *)i, &result);
        CHECK_EQ((intptr_t)result, i);
    }
}
static void *fork_on(void *arg) {
    while (__atomic_fetch_add(&forks, 1, __ATOMIC_RELAXED) < FORKS)
        expect_exit(child_status(work_a_little, SECONDS), 0);
    return arg;
}
static void *churn(void *arg) {
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
        pthread_t thread;
        CHECK_OK(pthread_create(&thread, NULL, do_nothing, NULL));
        CHECK_OK(pthread_join(thread, NULL));
    }
    return arg;
}
static void three_hundred_forks(void) {
    pthread_t forkers[FORKERS], churners[CHURNERS];
    for (int i = 0; i < CHURNERS; i++)
        CHECK_OK(pthread_create(&churners[i], NULL, churn, NULL));
    for (int i = 0; i < FORKERS; i++)
        CHECK_OK(pthread_create(&forkers[i], NULL, fork_on, NULL));
    for (int i = 0; i < FORKERS; i++)
        CHECK_OK(pthread_join(forkers[i], NULL));
    set_flag(&over);
    for (int i = 0; i < CHURNERS; i++)
        CHECK_OK(pthread_join(churners[i], NULL));
    wait_until_settled(0);
    expect_reused(run_thread(do_nothing, NULL), run_thread(do_nothing, NULL));
}

static const struct check_case cases[] = {
    {"handlers_of_a_library", handlers_of_a_library, FAILS_WHEN_SKIPPED},
    {"three_hundred_forks", three_hundred_forks, FAILS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
