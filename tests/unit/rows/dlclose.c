// SPDX-License-Identifier: Apache-2.0
//
// Row "dlclose": a library with thread_local objects stays as long as a thread has such an object, and no longer:
// when that thread has ended, its kernel thread being idle, dlclose unloads the library.

#include <link.h>
#include <semaphore.h>

#include "check.h"

static const char module_name[] = "librow-dlclose-module.so";

static struct { int constructed, destroyed, unloaded; } events;

static void *module;
static int (*module_use)(void);
static void *(*module_thread)(void *);
static void *(*module_exiting_thread)(void *);

static void open_module(void) {
    memset(&events, 0, sizeof events);
    module = dlopen(module_name, RTLD_NOW);
    CHECK(module, "%s", dlerror());
    void (*hand_in)(void *) = (void (*)(void *))dlsym(module, "module_events");
    module_use = (int (*)(void))dlsym(module, "module_use");
    module_thread = (void *(*)(void *))dlsym(module, "module_thread");
    module_exiting_thread = (void *(*)(void *))dlsym(module, "module_exiting_thread");
    CHECK(hand_in && module_use && module_thread && module_exiting_thread, "a function is missing");
    hand_in(&events);
}

static int is_loaded(void) {
    void *handle = dlopen(module_name, RTLD_NOW | RTLD_NOLOAD);
    if (handle)
        dlclose(handle);
    return handle != NULL;
}

static void close_and_expect_gone(void) {
    CHECK(dlclose(module) == 0, "%s", dlerror());
    CHECK(!is_loaded(), "the library is still there after dlclose");
    CHECK_EQ(events.unloaded, 1);
}

static void *use_module(void *arg) {
    CHECK_EQ(module_use(), 1234);
    return arg;
}

static void *use_module_and_exit(void *arg) {
    use_module(arg);
    pthread_exit(arg);
}

static void unloads(void *(*start)(void *)) {
    pid_t last = run_thread(do_nothing, NULL);
    for (int i = 0; i < 5; i++) {
        open_module();
        pid_t tid = run_thread(start, NULL);
        expect_reused(last, tid);
        CHECK_EQ(events.constructed, 1);
        CHECK_EQ(events.destroyed, 1);
        tid = run_thread(start, NULL);
        CHECK_EQ(events.constructed, 2);
        CHECK_EQ(events.destroyed, 2);
        close_and_expect_gone();
        last = run_thread(do_nothing, NULL);
        expect_reused(tid, last);
    }
}

static void after_return(void) {
    unloads(use_module);
}

static void after_pthread_exit(void) {
    unloads(use_module_and_exit);
}

static void run_module_thread(void *arg, void *(*start)(void *)) {
    void *result;
    run_thread_result(start, arg, &result);
    CHECK(result == arg, "wrong result from the library's start routine");
}

// The start routine itself lies in the library: the idle thread must not come back to it.
static void start_routine_in_the_library(void) {
    int value;
    for (int i = 0; i < 5; i++) {
        open_module();
        run_module_thread(&value, module_thread);
        run_module_thread(&value, module_exiting_thread);
        CHECK_EQ(events.destroyed, 2);
        close_and_expect_gone();
        run_thread(do_nothing, NULL);
    }
}

static sem_t used, may_end;

static void *use_module_and_stay(void *arg) {
    use_module(arg);
    sem_post(&used);
    while (sem_wait(&may_end) == -1) {
    }
    return arg;
}

// Closed while a thread has the object: the library stays until the destructor has run.
static void closed_while_in_use(void) {
    CHECK_SYS(sem_init(&used, 0, 0));
    CHECK_SYS(sem_init(&may_end, 0, 0));
    for (int i = 0; i < 3; i++) {
        open_module();
        pthread_t thread;
        int64_t busy = busy_threads();
        CHECK_OK(pthread_create(&thread, NULL, use_module_and_stay, NULL));
        CHECK_SYS(sem_wait(&used));
        CHECK(dlclose(module) == 0, "%s", dlerror());
        CHECK_EQ(events.unloaded, 0);
        CHECK_EQ(events.destroyed, 0);
        CHECK_SYS(sem_post(&may_end));
        CHECK_OK(pthread_join(thread, NULL));
        wait_until_settled(busy);
        CHECK_EQ(events.destroyed, 1);
        open_module();
        CHECK_EQ(dlclose(module), 0);
        CHECK(!is_loaded(), "the library is still there");
        run_thread(do_nothing, NULL);
    }
}

enum { IDLE = 4 };

static void *use_together(void *barrier) {
    use_module(NULL);
    pthread_barrier_wait(barrier);
    return NULL;
}

static void several_idle_threads(void) {
    for (int i = 0; i < 5; i++) {
        open_module();
        int64_t busy = busy_threads();
        pthread_barrier_t barrier;
        CHECK_OK(pthread_barrier_init(&barrier, NULL, IDLE));
        pthread_t threads[IDLE];
        for (int j = 0; j < IDLE; j++)
            CHECK_OK(pthread_create(&threads[j], NULL, use_together, &barrier));
        for (int j = 0; j < IDLE; j++)
            CHECK_OK(pthread_join(threads[j], NULL));
        wait_until_settled(busy);
        CHECK_EQ(events.destroyed, IDLE);
        close_and_expect_gone();
    }
}

static const struct check_case cases[] = {
    {"after-return", after_return, FAILS_WHEN_SKIPPED},
    {"after-pthread-exit", after_pthread_exit, FAILS_WHEN_SKIPPED},
    {"start-routine-in-the-library", start_routine_in_the_library, FAILS_WHEN_SKIPPED},
    {"closed-while-in-use", closed_while_in_use, HOLDS_WHEN_SKIPPED},
    {"several-idle-threads", several_idle_threads, FAILS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
