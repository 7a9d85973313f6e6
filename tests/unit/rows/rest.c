// SPDX-License-Identifier: Apache-2.0
//
// Row rest: with THRUM_CACHE_MIN_REST=200 a thread that ended is not reused within 200 ms, and is afterwards.
#include "child.h"

enum { REST_MS = 200, ROUNDS = 3 };

static void *note_end(void *p) {
    *(int64_t *)p = now_ms();
    return NULL;
}

struct start {
    int64_t when;
    pid_t tid;
};
static void *note_start(void *p) {
    struct start *start = p;
    start->when = now_ms();
    start->tid = kernel_tid();
    return NULL;
}

static void not_at_once(void) {
    check_with_env("THRUM_CACHE_MIN_REST", "200");
    for (int round = 0; round < ROUNDS; round++) {
        int64_t ended = 0;
        pid_t first = run_thread(note_end, &ended);
        for (int64_t begin = now_ms(); now_ms() - begin < REST_MS + 100;) {
            struct start start;
            pthread_t thread;
            CHECK_OK(pthread_create(&thread, NULL, note_start, &start));
            CHECK_OK(pthread_join(thread, NULL));
            CHECK(start.tid != first || start.when - ended >= REST_MS - 1, "reused %d ms after its end",
                  (int)(start.when - ended));
            sleep_ms(10);
        }
    }
}

// Threads that end one after the other: the reuse comes, for each of them in its turn.
static void afterwards(void) {
    check_with_env("THRUM_CACHE_MIN_REST", "200");
    const volatile struct thrum_cache_counters *c = counters();
    if (!c)
        return;
    run_together(3);
    uint64_t created = c->created, reused = c->reused;
    sleep_ms(REST_MS + 50);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, do_nothing, NULL));
    for (int i = 0; i < 3; i++)
        CHECK_OK(pthread_join(threads[i], NULL));
    CHECK_EQ(c->created, created);
    CHECK_EQ(c->reused, reused + 3);
}

static void no_rest(void) {
    expect_reused(run_thread(do_nothing, NULL), run_thread(do_nothing, NULL));
}

static const struct check_case cases[] = {
    {"not_at_once", not_at_once, FAILS_WHEN_SKIPPED},
    {"afterwards", afterwards, HOLDS_WHEN_SKIPPED},
    {"no_rest", no_rest, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
