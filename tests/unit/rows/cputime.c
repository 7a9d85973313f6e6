// SPDX-License-Identifier: Apache-2.0
//
// Row "cputime": the CPU-time clock of a thread starts at zero, through every door: CLOCK_THREAD_CPUTIME_ID,
// pthread_getcpuclockid, getrusage(RUSAGE_THREAD), timers and sleeps on that clock. The predecessor used 150 ms.

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "child.h"

enum { BURNT_MS = 150, FRESH_MS = 75 };

static double clock_ms(clockid_t clock) {
    struct timespec now;
    CHECK_SYS(clock_gettime(clock, &now));
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static struct timespec timespec_of_ms(long ms) {
    return (struct timespec){ms / 1000, ms % 1000 * 1000000};
}

// Uses CPU time, measured by the process's clock: all other threads sleep.
static void burn_ms(double ms) {
    double end = clock_ms(CLOCK_PROCESS_CPUTIME_ID) + ms;
    while (clock_ms(CLOCK_PROCESS_CPUTIME_ID) < end) {
    }
}

static void *burn(void *arg) {
    burn_ms(BURNT_MS);
    return arg;
}

static void after_a_busy_thread(void *(*look)(void *)) {
    pid_t first = run_thread(burn, NULL), second = run_thread(look, NULL);
    pid_t third = run_thread(burn, NULL), fourth = run_thread(look, NULL);
    expect_reused(first, second);
    expect_reused(second, third);
    expect_reused(third, fourth);
}

static void expect_fresh(double ms, const char *what) {
    CHECK(ms >= 0 && ms < FRESH_MS, "%s starts at %.3f ms", what, ms);
}

static void *look_clock(void *arg) {
    double start = clock_ms(CLOCK_THREAD_CPUTIME_ID);
    expect_fresh(start, "CLOCK_THREAD_CPUTIME_ID");
    burn_ms(50);
    double used = clock_ms(CLOCK_THREAD_CPUTIME_ID) - start;
    CHECK(used > 45 && used < 100, "50 ms of work were counted as %.3f ms", used);
    return arg;
}

static void own_clock(void) {
    after_a_busy_thread(look_clock);
}

static void *look_own_clockid(void *arg) {
    clockid_t clock;
    CHECK_OK(pthread_getcpuclockid(pthread_self(), &clock));
    expect_fresh(clock_ms(clock), "the clock of pthread_getcpuclockid");
    double before = clock_ms(CLOCK_THREAD_CPUTIME_ID), between = clock_ms(clock);
    double after = clock_ms(CLOCK_THREAD_CPUTIME_ID);
    CHECK(before <= between && between <= after, "two clocks of one thread: %f, %f, %f", before, between,
          after);
    return arg;
}

static void own_clockid(void) {
    after_a_busy_thread(look_own_clockid);
}

static void *wait_and_burn(void *barrier) {
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    burn_ms(50);
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    return NULL;
}

// Read by another thread.
static void clock_of_another_thread(void) {
    pid_t first = run_thread(burn, NULL);
    pthread_barrier_t barrier;
    CHECK_OK(pthread_barrier_init(&barrier, NULL, 2));
    struct run_arg run = {wait_and_burn, &barrier, 0};
    pthread_t thread;
    clockid_t clock;
    CHECK_OK(pthread_create(&thread, NULL, run_start, &run));
    pthread_barrier_wait(&barrier);
    CHECK_OK(pthread_getcpuclockid(thread, &clock));
    expect_fresh(clock_ms(clock), "the clock of another thread");
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    double used = clock_ms(clock);
    CHECK(used > 45 && used < 50 + FRESH_MS, "50 ms of another thread's work were counted as %.3f ms", used);
    pthread_barrier_wait(&barrier);
    CHECK_OK(pthread_join(thread, NULL));
    expect_reused(first, run.tid);
}

// Read right after the creation, perhaps before the thread runs; it does not end before that.
static void *end_after(void *flag) {
    await_flag((int *)flag);
    return NULL;
}
static void clock_read_at_once(void) {
    pid_t last = run_thread(burn, NULL);
    for (int i = 0; i < 50; i++) {
        int64_t busy = busy_threads();
        int read = 0;
        struct run_arg run = {end_after, &read, 0};
        pthread_t thread;
        clockid_t clock;
        struct timespec now;
        CHECK_OK(pthread_create(&thread, NULL, run_start, &run));
        CHECK_OK(pthread_getcpuclockid(thread, &clock));
        CHECK_SYS(clock_gettime(clock, &now));
        expect_fresh((double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6, "the clock of a thread just made");
        set_flag(&read);
        CHECK_OK(pthread_join(thread, NULL));
        wait_until_settled(busy);
        expect_reused(last, run.tid);
        last = run.tid;
    }
}

static double rusage_ms(void) {
    struct rusage usage;
    CHECK_SYS(getrusage(RUSAGE_THREAD, &usage));
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

static void *look_rusage(void *arg) {
    double start = rusage_ms();
    expect_fresh(start, "getrusage(RUSAGE_THREAD)");
    burn_ms(60);
    double used = rusage_ms() - start;
    CHECK(used > 40 && used < 100, "60 ms of work were counted as %.3f ms", used);
    struct rusage usage;
    CHECK_SYS(getrusage(RUSAGE_THREAD, &usage));
    CHECK(usage.ru_utime.tv_sec >= 0 && usage.ru_utime.tv_usec >= 0 && usage.ru_utime.tv_usec < 1000000 &&
              usage.ru_stime.tv_sec >= 0 && usage.ru_stime.tv_usec >= 0 && usage.ru_stime.tv_usec < 1000000,
          "times out of range");
    return arg;
}

static void rusage_times(void) {
    after_a_busy_thread(look_rusage);
}

static void *switch_and_fault(void *arg) {
    for (int i = 0; i < 500; i++)
        usleep(10);
    size_t size = 8 << 20;
    char *memory = malloc(size);
    CHECK(memory, "malloc");
    for (size_t i = 0; i < size; i += 4096)
        ((volatile char *)memory)[i] = 1;
    free(memory);
    return arg;
}

static void *look_rusage_counts(void *arg) {
    struct rusage usage;
    CHECK_SYS(getrusage(RUSAGE_THREAD, &usage));
    CHECK(usage.ru_nvcsw >= 0 && usage.ru_nvcsw < 100, "%ld voluntary context switches at once",
          usage.ru_nvcsw);
    CHECK(usage.ru_minflt >= 0 && usage.ru_minflt < 500, "%ld page faults at once", usage.ru_minflt);
    return arg;
}

static void rusage_counts(void) {
    pid_t first = run_thread(switch_and_fault, NULL), second = run_thread(look_rusage_counts, NULL);
    expect_reused(first, second);
}

static volatile sig_atomic_t expired;

static void expire(int signal_number) {
    (void)signal_number;
    expired = 1;
}

static void expect_expiry(timer_t timer, double from, double delay) {
    double limit = from + delay + 500;
    while (!expired && clock_ms(CLOCK_THREAD_CPUTIME_ID) < limit) {
    }
    double at = clock_ms(CLOCK_THREAD_CPUTIME_ID);
    CHECK(expired, "the timer did not expire within %.3f ms", at - from);
    CHECK(at >= from + delay - 1, "the timer for %.3f expired at %.3f ms", from + delay, at);
    CHECK_SYS(timer_delete(timer));
    expired = 0;
}

static void arm_and_expect(clockid_t clock, int flags) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    timer_t timer;
    CHECK_SYS(timer_create(clock, &event, &timer));
    double start = clock_ms(CLOCK_THREAD_CPUTIME_ID), delay = 100;
    long absolute = (long)(start + delay);
    struct itimerspec spec = {.it_value = timespec_of_ms(flags == TIMER_ABSTIME ? absolute : (long)delay)};
    if (flags == TIMER_ABSTIME)
        delay = (double)absolute - start;
    CHECK_SYS(timer_settime(timer, flags, &spec, NULL));
    CHECK_SYS(timer_gettime(timer, &spec));
    double left = (double)spec.it_value.tv_sec * 1e3 + (double)spec.it_value.tv_nsec / 1e6;
    CHECK(left > 1 && left <= delay + 10, "the timer has %.3f ms left of %.3f", left, delay);
    expect_expiry(timer, start, delay);
}

static void *use_timers(void *arg) {
    expect_fresh(clock_ms(CLOCK_THREAD_CPUTIME_ID), "CLOCK_THREAD_CPUTIME_ID");
    arm_and_expect(CLOCK_THREAD_CPUTIME_ID, TIMER_ABSTIME);
    arm_and_expect(CLOCK_THREAD_CPUTIME_ID, 0);
    clockid_t clock;
    CHECK_OK(pthread_getcpuclockid(pthread_self(), &clock));
    arm_and_expect(clock, TIMER_ABSTIME);
    return arg;
}

static void timers(void) {
    signal(SIGUSR1, expire);
    pid_t first = run_thread(burn, NULL), second = run_thread(use_timers, NULL);
    expect_reused(first, second);
}

// The same by their system calls, whose timers are numbers.
static void *use_timers_by_syscall(void *arg) {
    enum { ONE_OF_EACH = 2, FAR_MS = 60000 };
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    clockid_t clocks[ONE_OF_EACH] = {CLOCK_THREAD_CPUTIME_ID};
    CHECK_OK(pthread_getcpuclockid(pthread_self(), &clocks[1]));
    for (int i = 0; i < ONE_OF_EACH; i++) {
        int timer;
        double start = clock_ms(CLOCK_THREAD_CPUTIME_ID);
        struct itimerspec spec = {.it_value = timespec_of_ms((long)start + FAR_MS)}, left;
        expect_fresh(start, "CLOCK_THREAD_CPUTIME_ID");
        CHECK_SYS(syscall(SYS_timer_create, clocks[i], &event, &timer));
        CHECK_SYS(syscall(SYS_timer_settime, timer, TIMER_ABSTIME, &spec, NULL));
        CHECK_SYS(syscall(SYS_timer_gettime, timer, &left));
        double ms = (double)left.it_value.tv_sec * 1e3 + (double)left.it_value.tv_nsec / 1e6;
        CHECK(ms > FAR_MS - FRESH_MS && ms <= FAR_MS + 10, "the timer has %.3f ms left of %d", ms, FAR_MS);
        CHECK(syscall(SYS_timer_settime, timer, TIMER_ABSTIME, 16L, NULL) == -1 && errno == EFAULT,
              "times that cannot be read");
        CHECK_SYS(syscall(SYS_timer_delete, timer));
    }
    timer_t timer;
    CHECK_SYS(timer_create(clocks[0], &event, &timer));
    CHECK(timer_settime(timer, TIMER_ABSTIME, (const struct itimerspec *)16, NULL) == -1 && errno == EFAULT,
          "times that cannot be read");
    CHECK_SYS(timer_delete(timer));
    return arg;
}

static void timers_by_syscall(void) {
    pid_t first = run_thread(burn, NULL), second = run_thread(use_timers_by_syscall, NULL);
    expect_reused(first, second);
}

// A timer that another thread sets on a reused thread's clock, to signal that one: it counts from the logical start.
struct timed {
    pthread_barrier_t barrier;
    pid_t tid;
};
static volatile pid_t expired_in;
static void expire_in(int signal_number) {
    expire(signal_number);
    expired_in = kernel_tid();
}
static void *burn_until_expiry(void *p) {
    struct timed *timed = p;
    timed->tid = kernel_tid();
    pthread_barrier_wait(&timed->barrier);
    pthread_barrier_wait(&timed->barrier);
    double start = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    while (!expired && clock_ms(CLOCK_THREAD_CPUTIME_ID) < 650) {
    }
    double used = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - start;
    CHECK(expired, "the timer did not expire");
    CHECK(used > 140 - FRESH_MS / 2.0, "expired after %.3f of 150 ms", used);
    return p;
}
static void timer_on_anothers_clock(void) {
    struct timed timed;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    const struct itimerspec spec = {.it_value = timespec_of_ms(150)};
    pthread_t thread;
    clockid_t clock;
    timer_t timer;
    signal(SIGUSR1, expire_in);
    CHECK_OK(pthread_barrier_init(&timed.barrier, NULL, 2));
    pid_t first = run_thread(burn, NULL);
    CHECK_OK(pthread_create(&thread, NULL, burn_until_expiry, &timed));
    pthread_barrier_wait(&timed.barrier);
    CHECK_OK(pthread_getcpuclockid(thread, &clock));
    event._sigev_un._tid = timed.tid;
    CHECK_SYS(timer_create(clock, &event, &timer));
    CHECK_SYS(timer_settime(timer, TIMER_ABSTIME, &spec, NULL));
    pthread_barrier_wait(&timed.barrier);
    CHECK_OK(pthread_join(thread, NULL));
    CHECK_EQ(expired_in, timed.tid);
    expect_reused(first, timed.tid);
    expect_not_reused(timed.tid, run_thread(do_nothing, NULL));
    CHECK_SYS(timer_delete(timer));
}

// The kernel looks at such clocks when a tick comes, and where threads take turns of less than a tick it may miss some: so the
// thread burns until the sleeper is awake.
static atomic_bool is_awake;
static void *burn_on_command(void *barrier) {
    pthread_barrier_wait(barrier);
    while (!is_awake) {
    }
    pthread_barrier_wait(barrier);
    return NULL;
}

// Sleep until another thread has used 100 ms.
static void sleep_on_a_threads_clock(void) {
    pid_t first = run_thread(burn, NULL);
    pthread_barrier_t barrier;
    CHECK_OK(pthread_barrier_init(&barrier, NULL, 2));
    struct run_arg run = {burn_on_command, &barrier, 0};
    pthread_t thread;
    clockid_t clock;
    CHECK_OK(pthread_create(&thread, NULL, run_start, &run));
    CHECK_OK(pthread_getcpuclockid(thread, &clock));
    double before = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    pthread_barrier_wait(&barrier);
    struct timespec until = timespec_of_ms(100);
    CHECK_OK(clock_nanosleep(clock, TIMER_ABSTIME, &until, NULL));
    double used = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - before;
    is_awake = true;
    pthread_barrier_wait(&barrier);
    CHECK_OK(pthread_join(thread, NULL));
    CHECK(used > 90 - FRESH_MS / 2.0, "woken after %.3f of 100 ms", used);
    expect_reused(first, run.tid);
}

// The same doors without libc's wrappers.
static void *look_by_syscall(void *arg) {
    struct timespec now;
    CHECK_SYS(syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now));
    expect_fresh((double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6, "syscall(SYS_clock_gettime)");
    struct rusage usage;
    CHECK_SYS(syscall(SYS_getrusage, RUSAGE_THREAD, &usage));
    expect_fresh((double)usage.ru_utime.tv_sec * 1e3 + (double)usage.ru_utime.tv_usec / 1e3,
                 "syscall(SYS_getrusage)");
    return arg;
}

static void by_syscall(void) {
    after_a_busy_thread(look_by_syscall);
}

// What belongs to the process or to main is not touched.
static void other_clocks_are_untouched(void) {
    clockid_t clock;
    CHECK_OK(pthread_getcpuclockid(pthread_self(), &clock));
    burn_ms(20);
    double main_before = clock_ms(CLOCK_THREAD_CPUTIME_ID),
           process_before = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    CHECK(main_before >= 19 && clock_ms(clock) >= main_before, "main's clock is wrong");
    run_thread(burn, NULL);
    run_thread(burn, NULL);
    double process_used = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - process_before;
    CHECK(process_used >= 2 * BURNT_MS - 1, "the process's clock counted %.3f ms", process_used);
    CHECK(clock_ms(CLOCK_THREAD_CPUTIME_ID) >= main_before, "main's clock went back");
    CHECK(rusage_ms() >= 15, "main's rusage is %.3f ms", rusage_ms());
    struct rusage usage;
    CHECK_SYS(getrusage(RUSAGE_SELF, &usage));
    CHECK(usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000 + usage.ru_stime.tv_sec * 1000 +
                  usage.ru_stime.tv_usec / 1000 >=
              2 * BURNT_MS - 20,
          "the process's rusage lost something");
    struct timespec resolution;
    CHECK_SYS(clock_getres(CLOCK_THREAD_CPUTIME_ID, &resolution));
    CHECK_EQ(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &resolution, NULL), EINVAL);
}

static const struct check_case cases[] = {
    {"own-clock", own_clock, FAILS_WHEN_SKIPPED},
    {"own-clockid", own_clockid, FAILS_WHEN_SKIPPED},
    {"clock-of-another-thread", clock_of_another_thread, FAILS_WHEN_SKIPPED},
    {"clock-read-at-once", clock_read_at_once, FAILS_WHEN_SKIPPED},
    {"rusage-times", rusage_times, FAILS_WHEN_SKIPPED},
    {"rusage-counts", rusage_counts, FAILS_WHEN_SKIPPED},
    {"timers", timers, FAILS_WHEN_SKIPPED},
    {"timers-by-syscall", timers_by_syscall, FAILS_WHEN_SKIPPED},
    {"timer-on-anothers-clock", timer_on_anothers_clock, FAILS_WHEN_SKIPPED},
    {"sleep-on-a-threads-clock", sleep_on_a_threads_clock, FAILS_WHEN_SKIPPED},
    {"by-syscall", by_syscall, FAILS_WHEN_SKIPPED},
    {"other-clocks-are-untouched", other_clocks_are_untouched, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
