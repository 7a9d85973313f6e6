// SPDX-License-Identifier: Apache-2.0
//
// Row deepbind: modules that are opened with RTLD_DEEPBIND find libc before any preloaded library. What they do to
// threads is what libc does.
#include <signal.h>
#include <sys/prctl.h>

#include "child.h"

static int (*module_join)(pthread_t, void **);
static int (*module_kill)(pthread_t);
static int (*module_slack)(unsigned long);

static void open_module(void) {
    void *module = dlopen("librow-deepbind-module.so", RTLD_NOW | RTLD_DEEPBIND);
    PREMISE(module != NULL, "%s", dlerror());
    module_join = (int (*)(pthread_t, void **))dlsym(module, "module_join");
    module_kill = (int (*)(pthread_t))dlsym(module, "module_kill");
    module_slack = (int (*)(unsigned long))dlsym(module, "module_slack");
}

// Does not return where the thread is kept: the skipped run ends by its time limit.
static void joins_later_thread(void) {
    pthread_t thread;
    void *result = NULL;
    int flag = 0;
    warm_threads(2);
    open_module();
    CHECK_OK(pthread_create(&thread, NULL, do_nothing, &flag));
    CHECK_OK(module_join(thread, &result));
    CHECK(result == &flag, "another result");
}

// One that was there before.
static void *wait_for_flag(void *flag) {
    await_flag(flag);
    return flag;
}
static void joins_earlier_thread(void) {
    pthread_t thread;
    void *result = NULL;
    int flag = 0;
    CHECK_OK(pthread_create(&thread, NULL, wait_for_flag, &flag));
    open_module();
    CHECK_EQ(module_kill(thread), 0);
    set_flag(&flag);
    CHECK_OK(module_join(thread, &result));
    CHECK(result == &flag, "another result");
}

static void *change_slack(void *arg) {
    CHECK_SYS(module_slack(123456));
    return arg;
}
static void *own_slack(void *arg) {
    (void)arg;
    return (void *)(intptr_t)prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
}
static void changes_its_thread(void) {
    void *seen;
    int own = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    warm_threads(2);
    open_module();
    run_thread(change_slack, NULL);
    for (int i = 0; i < 4; i++) {
        run_thread_result(own_slack, NULL, &seen);
        CHECK_EQ((intptr_t)seen, own);
    }
}

// Without the flag the cache continues.
static void opened_without(void) {
    PREMISE(dlopen("librow-deepbind-module.so", RTLD_NOW) != NULL, "%s", dlerror());
    pid_t first = run_thread(do_nothing, NULL);
    expect_reused(first, run_thread(do_nothing, NULL));
}

static const struct check_case cases[] = {
    {"joins_later_thread", joins_later_thread, FAILS_WHEN_SKIPPED},
    {"joins_earlier_thread", joins_earlier_thread, FAILS_WHEN_SKIPPED},
    {"changes_its_thread", changes_its_thread, FAILS_WHEN_SKIPPED},
    {"opened_without", opened_without, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
