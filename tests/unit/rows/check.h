// SPDX-License-Identifier: Apache-2.0
//
// What every row test shares: checks that say where and what, the cases of a program, and a look at the cache's
// counters. A row test is a plain C or C++ program, each of its cases a process of its own; run-row.sh runs them
// without thrum, under it, and under it with the row's handling left out. Included by every test in this folder.
//
// A test is written so that it passes on plain glibc: what glibc does is the oracle. It does not link anything of
// thrum; that it runs under the cache it sees by the symbol `thrum_cache_counters`.
//
//     static void survives(void) { CHECK(1 + 1 == 2, "arithmetic broke"); }
//     static const struct check_case cases[] = {{"survives", survives, FAILS_WHEN_SKIPPED}};
//     CHECK_MAIN(cases)
#ifndef THRUM_TESTS_ROWS_CHECK_H
#define THRUM_TESTS_ROWS_CHECK_H

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "thrum/cache.h"

// Exit codes of a case; run-row.sh knows them too.
enum {
    CHECK_EXIT_FAILED = 1,  // a check failed: what a skipped row must lead to
    CHECK_EXIT_CANNOT = 77, // cannot run here; the reason was printed
    CHECK_EXIT_PREMISE =
        79 // not what the row is about: no thrum where there should be, no reuse. A failure in every mode
};

// ---- checks --------------------------------------------------------------------------------------------------

#define CHECK_SAY(what, text, ...)                                                                           \
    do {                                                                                                     \
        fprintf(stderr, "%s:%d: %s: %s: ", __FILE__, __LINE__, what, text);                                  \
        fprintf(stderr, __VA_ARGS__);                                                                        \
        fputc('\n', stderr);                                                                                 \
    } while (0)

// Fails the case with a message (printf style) unless the condition holds. May be used in any thread.
#define CHECK(condition, ...)                                                                                \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            CHECK_SAY("not so", "" #condition, __VA_ARGS__);                                                 \
            _exit(CHECK_EXIT_FAILED);                                                                        \
        }                                                                                                    \
    } while (0)

// Two integers are equal.
#define CHECK_EQ(actual, expected)                                                                           \
    do {                                                                                                     \
        long long actual_ = (long long)(actual), expected_ = (long long)(expected);                          \
        if (actual_ != expected_) {                                                                          \
            CHECK_SAY("wrong value", "" #actual, "is %lld, expected %lld (%s)", actual_, expected_,          \
                      "" #expected);                                                                         \
            _exit(CHECK_EXIT_FAILED);                                                                        \
        }                                                                                                    \
    } while (0)

// A call that returns an errno value, pthreads' way, returned 0.
#define CHECK_OK(call)                                                                                       \
    do {                                                                                                     \
        int error_ = (call);                                                                                 \
        if (error_ != 0) {                                                                                   \
            CHECK_SAY("call failed", "" #call, "%s", strerror(error_));                                      \
            _exit(CHECK_EXIT_FAILED);                                                                        \
        }                                                                                                    \
    } while (0)

// A call that returns -1 and sets errno did not.
#define CHECK_SYS(call)                                                                                      \
    do {                                                                                                     \
        if ((long)(call) == -1) {                                                                            \
            CHECK_SAY("call failed", "" #call, "%s", strerror(errno));                                       \
            _exit(CHECK_EXIT_FAILED);                                                                        \
        }                                                                                                    \
    } while (0)

// What the test itself stands on holds; not the row under test.
#define PREMISE(condition, ...)                                                                              \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            CHECK_SAY("not a test", "" #condition, __VA_ARGS__);                                             \
            _exit(CHECK_EXIT_PREMISE);                                                                       \
        }                                                                                                    \
    } while (0)

// This machine cannot run the case at all.
#define CANNOT(...)                                                                                          \
    do {                                                                                                     \
        CHECK_SAY("cannot run", "here", __VA_ARGS__);                                                        \
        _exit(CHECK_EXIT_CANNOT);                                                                            \
    } while (0)

// ---- the cache, as seen from inside -----------------------------------------------------------------------------

// Whether the library is there, and its counters.
static inline const volatile struct thrum_cache_counters *loaded_counters(void) {
    return (const volatile struct thrum_cache_counters *)dlsym(RTLD_DEFAULT, "thrum_cache_counters");
}

// With THRUM_ROW_MODE=<a mode of bench/alternatives, none of which reuses threads> set, a program must behave exactly as
// without thrum: nothing that is said below of reuse is expected, and everything for which glibc is the oracle is.
// Only that the library is loaded is checked; that it made threads is checked by mode.c.
static inline int mode_reuses(void) {
    return getenv("THRUM_ROW_MODE") == NULL;
}

// The counters, or NULL where the program runs without thrum.
static inline const volatile struct thrum_cache_counters *counters(void) {
    return mode_reuses() ? loaded_counters() : NULL;
}

static inline int under_thrum(void) {
    return counters() != NULL;
}

// Why the cache is off, "on", or NULL where the program runs without thrum.
static inline const char *cache_state(void) {
    typedef const char *(*state_function)(void);
    state_function state = (state_function)dlsym(RTLD_DEFAULT, "thrum_cache_state");
    return state ? state() : NULL;
}

// The row test may look at this to make its skipped run meaningful: non-zero where the row's handling is left out.
static inline int row_is_skipped(void) {
    return getenv("THRUM_SKIP") != NULL;
}

static inline void sleep_ms(long ms) {
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) == -1 && errno == EINTR) {
    }
}

static inline pid_t kernel_tid(void) {
    return (pid_t)syscall(SYS_gettid);
}

// Kernel threads of the cache that are neither idle nor gone. Zero without thrum.
static inline int64_t busy_threads(void) {
    const volatile struct thrum_cache_counters *c = counters();
    return c ? (int64_t)(c->created - c->retired - c->culled - c->idle) : 0;
}

// pthread_join may return a moment before the thread stands on the idle list. Waits (at most 2 s) until no more
// than `busy` threads of the cache are at work.
static inline void wait_until_settled(int64_t busy) {
    for (int i = 0; i < 2000 && busy_threads() > busy; i++)
        sleep_ms(1);
}

struct run_arg {
    void *(*start)(void *);
    void *arg;
    pid_t tid;
};

static inline void *run_start(void *p) {
    struct run_arg *run = (struct run_arg *)p;
    run->tid = kernel_tid();
    return run->start(run->arg);
}

// Creates a thread, joins it, waits until it rests; its kernel tid, and its result where `result` is not NULL.
static inline pid_t run_thread_result(void *(*start)(void *), void *arg, void **result) {
    int64_t busy = busy_threads();
    struct run_arg run = {start, arg, 0};
    pthread_t thread;
    CHECK_OK(pthread_create(&thread, NULL, run_start, &run));
    CHECK_OK(pthread_join(thread, result));
    wait_until_settled(busy);
    return run.tid;
}

static inline pid_t run_thread(void *(*start)(void *), void *arg) {
    return run_thread_result(start, arg, NULL);
}

static inline void *do_nothing(void *arg) {
    return arg;
}

// The second logical thread ran on the first one's kernel thread. Says nothing without thrum. A failure of this is
// one of the test's premise, not of the row.
static inline void expect_reused(pid_t first, pid_t second) {
    if (!under_thrum())
        return;
    PREMISE(first == second, "thread %d was not reused, the next one was %d (cache: %s)", (int)first,
            (int)second, cache_state());
}

// The second logical thread did not run on the first one's kernel thread: it retired. True without thrum as well
// (tids come round only after pid_max others), so this is a check of the row.
static inline void expect_not_reused(pid_t first, pid_t second) {
    CHECK(first != second, "kernel thread %d should have retired and was reused", (int)first);
}

// ---- the cases of a program -----------------------------------------------------------------------------------

enum check_when_skipped {
    HOLDS_WHEN_SKIPPED, // belongs to the row, but would hold without its handling (guards against overdoing it)
    FAILS_WHEN_SKIPPED // must fail (message, crash or hang) when the row's handling is left out
};

struct check_case {
    const char *name;
    void (*run)(void);
    enum check_when_skipped when_skipped;
};

extern char **environ;
static char **check_argv; // for check_with_env

// Makes sure that the case runs with this environment variable: starts the program anew where it is not set so.
static inline void check_with_env(const char *name, const char *value) {
    const char *now = getenv(name);
    if (now && strcmp(now, value) == 0)
        return;
    setenv(name, value, 1);
    execv("/proc/self/exe", check_argv);
    if (errno == ENOEXEC)
        CANNOT("under an emulator a program cannot start itself anew");
    CHECK(0, "execv: %s", strerror(errno));
}

// `prog --list` names the cases, `prog NAME` runs one. Exit code 0, or one of those above.
static inline int check_main(int argc, char **argv, const struct check_case *cases, size_t count) {
    check_argv = argv;
    const char *wanted = argc == 2 ? argv[1] : "";
    if (strcmp(wanted, "--list") == 0) {
        for (size_t i = 0; i < count; i++)
            printf("%s %s\n", cases[i].name, cases[i].when_skipped == FAILS_WHEN_SKIPPED ? "fails" : "holds");
        return 0;
    }
    if (getenv("THRUM_ROW_EXPECTED"))
        PREMISE(loaded_counters() != NULL, "the cache is not loaded");
    for (size_t i = 0; i < count; i++) {
        if (strcmp(cases[i].name, wanted) != 0)
            continue;
        cases[i].run();
        return 0;
    }
    fprintf(stderr, "usage: %s --list | CASE\n", argv[0]);
    return 2;
}

#define CHECK_MAIN(cases)                                                                                    \
    int main(int argc, char **argv) {                                                                        \
        return check_main(argc, argv, cases, sizeof(cases) / sizeof((cases)[0]));                            \
    }

#endif
