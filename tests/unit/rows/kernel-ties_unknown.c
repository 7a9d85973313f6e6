// SPDX-License-Identifier: Apache-2.0
//
// Row kernel-ties: a thread that makes a system call which the library does not know, and which succeeds, retires. What
// the kernel has yet to learn is played by a filter that answers 0.
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/mman.h>

#include "filter.h"
#include "raw.h"

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

// Memory that the kernel cannot read is its affair: it says so, or refuses the call before it looks.
#define FAILS_WITH(call, error) CHECK((long)(call) == -1 && errno == (error), "errno %d", errno)

static void expect_refused(void *bad) {
    const clockid_t clock = CLOCK_MONOTONIC;
    timer_t timer;
    FAILS_WITH(syscall(SYS_perf_event_open, bad, 0, -1, -1, 0), EFAULT);
    FAILS_WITH(syscall(SYS_clone3, bad, 88), EFAULT);
    FAILS_WITH(syscall(SYS_clone3, bad, 0), EINVAL);
    FAILS_WITH(syscall(SYS_capget, bad, NULL), EFAULT);
    FAILS_WITH(syscall(SYS_clock_gettime, clock, bad), EFAULT);
    FAILS_WITH(syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, bad), EFAULT);
    FAILS_WITH(syscall(SYS_clock_nanosleep, clock, 0, bad, NULL), EFAULT);
    FAILS_WITH(fcntl(STDIN_FILENO, F_SETOWN_EX, bad), EFAULT);
    if (bad != NULL)
        FAILS_WITH(syscall(SYS_timer_create, clock, bad, &timer), EFAULT);
}
static void *refuse_all(void *arg) {
    char *pages = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED, "mmap: %s", strerror(errno));
    CHECK_SYS(mprotect(pages + 4096, 4096, PROT_NONE));
    expect_refused(NULL);
    expect_refused((void *)8);
    expect_refused(pages + 4096);
    return arg;
}
static void bad_addresses(void) {
    warm_threads(1);
    refuse_all(NULL);
    run_thread(refuse_all, NULL);
}

// What libc's function of that name answers itself, or does more than the call, is not what the call does.
static void calls_alone(void) {
    const struct timespec none = {0, 0};
    const long expected =
        raw_call(SYS_clock_nanosleep, CLOCK_THREAD_CPUTIME_ID, TIMER_ABSTIME, (long)&none, 0, 0, 0);
    CHECK(expected < 0, "a thread slept on its own clock");
    FAILS_WITH(syscall(SYS_clock_nanosleep, CLOCK_THREAD_CPUTIME_ID, TIMER_ABSTIME, &none, NULL), -expected);
}
static void *is_asked_to_end(void *arg) {
    const struct timespec none = {0, 0};
    struct flock lock = {.l_type = F_UNLCK};
    CHECK_OK(pthread_cancel(pthread_self()));
    CHECK_SYS(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &none, NULL));
    syscall(SYS_fcntl, STDIN_FILENO, F_SETLKW, &lock);
    CHECK_OK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &(int){0}));
    return arg;
}
static void not_cancelled(void) {
    pthread_t thread;
    void *result = NULL;
    int here;
    CHECK_OK(pthread_create(&thread, NULL, is_asked_to_end, &here));
    CHECK_OK(pthread_join(thread, &result));
    CHECK(result == &here, "the thread was cancelled in a system call by its number");
}

static const struct check_case cases[] = {
    {"unknown_call", unknown_call, FAILS_WHEN_SKIPPED},   {"known_call", known_call, HOLDS_WHEN_SKIPPED},
    {"bad_addresses", bad_addresses, HOLDS_WHEN_SKIPPED}, {"calls_alone", calls_alone, HOLDS_WHEN_SKIPPED},
    {"not_cancelled", not_cancelled, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
