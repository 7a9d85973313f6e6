// SPDX-License-Identifier: Apache-2.0
//
// Row glibc: where a private symbol of libc that the cache needs is missing, it is off, says so in one line where asked,
// and threads work. Debug builds pretend that one is missing (THRUM_DEBUG_MISSING); release builds do not listen.
#include "off.h"

static const char missing[] = "__pthread_unwind_next";

static void pretend(void) {
    check_with_env("THRUM_DEBUG_MISSING", missing);
}

#ifdef THRUM_TEST_CHECKED
static void off(void) {
    pretend();
    expect_cache_off();
}
static void one_line(void) {
    pretend();
    expect_one_line(missing);
}
#else
static void release_does_not_listen(void) {
    pretend();
    if (under_thrum())
        CHECK(strcmp(cache_state(), "on") == 0, "off by a debugging variable: %s", cache_state());
}
#endif
static void threads_work(void) {
    pretend();
    use_threads_without_cache();
}
static void quiet_run(void) {
    run_thread(do_nothing, NULL);
}

// With nothing missing it is on: otherwise none of the other rows says anything.
static void on(void) {
    if (under_thrum())
        CHECK(strcmp(cache_state(), "on") == 0, "the cache is off: %s", cache_state());
}

static const struct check_case cases[] = {
#ifdef THRUM_TEST_CHECKED
    {"off", off, FAILS_WHEN_SKIPPED},
    {"one_line", one_line, FAILS_WHEN_SKIPPED},
#else
    {"release_does_not_listen", release_does_not_listen, HOLDS_WHEN_SKIPPED},
#endif
    {"threads_work", threads_work, HOLDS_WHEN_SKIPPED},
    {"quiet_run", quiet_run, HOLDS_WHEN_SKIPPED},
    {"on", on, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
