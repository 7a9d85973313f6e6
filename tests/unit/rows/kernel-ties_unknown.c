// SPDX-License-Identifier: Apache-2.0
//
// Row kernel-ties: a thread that makes a system call which the library does not know, and which succeeds, retires. What
// the kernel has yet to learn is played by a filter that answers 0.
#include "filter.h"

enum { NEWEST = 2000 };

static void *call_it(void *arg) {
    CHECK_EQ(syscall(NEWEST, 1, 2, 3), 0);
    return arg;
}
static void *ask_only(void *arg) {
    CHECK_SYS(syscall(SYS_getppid));
    return arg;
}

static void unknown_call(void) {
    static const long newest[] = {NEWEST, -1};
    if (!restarted_under(newest, SECCOMP_RET_ERRNO | 0))
        return;
    warm_threads(1);
    pid_t first = run_thread(call_it, NULL);
    expect_not_reused(first, run_thread(do_nothing, NULL));
}
static void known_call(void) {
    warm_threads(1);
    pid_t first = run_thread(ask_only, NULL);
    expect_reused(first, run_thread(do_nothing, NULL));
}

static const struct check_case cases[] = {
    {"unknown_call", unknown_call, FAILS_WHEN_SKIPPED},
    {"known_call", known_call, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
