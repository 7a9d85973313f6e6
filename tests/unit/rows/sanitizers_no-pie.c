// SPDX-License-Identifier: Apache-2.0
//
// Row sanitizers: a program that is not position independent. It has stubs of its own for the functions whose
// addresses it takes, and all libraries get those, too; that is no pthread_create of the program's own, so the cache
// is on.
#include "check.h"

extern char __executable_start[], end[]; // the linker's

__attribute__((noinline)) static void expect_one_address(const char *name, void *taken) {
    CHECK(taken == dlsym(RTLD_DEFAULT, name), "%s is at %p for the program, at %p for others", name, taken,
          dlsym(RTLD_DEFAULT, name));
    PREMISE((char *)taken >= __executable_start && (char *)taken < end, "no stub of %s", name);
}
static void one_address(void) {
    expect_one_address("pthread_create", (void *)pthread_create);
    expect_one_address("pthread_join", (void *)pthread_join);
    expect_one_address("pthread_self", (void *)pthread_self);
}

static void *look_at_oneself(void *self) {
    *(pthread_t *)self = pthread_self();
    return self;
}
static void by_address(void) {
    int (*volatile create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = pthread_create;
    int (*volatile join)(pthread_t, void **) = pthread_join;
    for (int i = 0; i < 20; i++) {
        pthread_t thread, self;
        void *result;
        CHECK_OK(create(&thread, NULL, look_at_oneself, &self));
        CHECK_OK(join(thread, &result));
        CHECK(result == &self && pthread_equal(thread, self), "not the thread that was created");
    }
}

static void on_and_reusing(void) {
    if (under_thrum())
        CHECK(strcmp(cache_state(), "on") == 0, "the cache is off: %s", cache_state());
    expect_reused(run_thread(do_nothing, NULL), run_thread(do_nothing, NULL));
}

static const struct check_case cases[] = {
    {"one_address", one_address, HOLDS_WHEN_SKIPPED},
    {"by_address", by_address, HOLDS_WHEN_SKIPPED},
    {"on_and_reusing", on_and_reusing, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
