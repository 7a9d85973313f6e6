// SPDX-License-Identifier: Apache-2.0
//
// Row "sigmask": a thread starts with the mask that its creator had when it created it. Idle threads take no signal
// that is meant for the program, but do take part in libc's broadcast of set*id.

#include <grp.h>
#include <signal.h>
#include <sys/time.h>

#include "check.h"

static sigset_t set_of(int signal_number) {
    sigset_t set;
    sigemptyset(&set);
    if (signal_number)
        sigaddset(&set, signal_number);
    return set;
}

static void set_mask(int signal_number) {
    sigset_t set = set_of(signal_number);
    CHECK_OK(pthread_sigmask(SIG_SETMASK, &set, NULL));
}

static void expect_same_mask(const sigset_t *expected) {
    sigset_t mask;
    CHECK_OK(pthread_sigmask(SIG_SETMASK, NULL, &mask));
    for (int i = 1; i <= SIGRTMAX; i++)
        CHECK(sigismember(&mask, i) == sigismember(expected, i), "signal %d is %sblocked", i,
              sigismember(&mask, i) == 1 ? "" : "not ");
}

static void *look(void *expected) {
    expect_same_mask(expected);
    return NULL;
}

static void *look_and_spoil(void *expected) {
    expect_same_mask(expected);
    sigset_t all;
    sigfillset(&all);
    CHECK_OK(pthread_sigmask(SIG_SETMASK, &all, NULL));
    return NULL;
}

static void creators_mask(void) {
    static const int blocked[] = {0, SIGUSR1, 0, SIGTERM, SIGUSR2, 0};
    pid_t last = 0;
    for (size_t i = 0; i < sizeof blocked / sizeof *blocked; i++) {
        set_mask(blocked[i]);
        sigset_t expected = set_of(blocked[i]);
        pid_t tid = run_thread(look, &expected);
        if (last)
            expect_reused(last, tid);
        last = tid;
    }
}

static void own_changes_end_with_the_thread(void) {
    sigset_t none = set_of(0);
    pid_t first = run_thread(look_and_spoil, &none), second = run_thread(look_and_spoil, &none);
    pid_t third = run_thread(look, &none);
    expect_reused(first, second);
    expect_reused(second, third);
}

static void *exit_blocked(void *arg) {
    look_and_spoil(arg);
    pthread_exit(arg);
}

static void own_changes_end_with_pthread_exit(void) {
    sigset_t none = set_of(0);
    pid_t first = run_thread(exit_blocked, &none), second = run_thread(exit_blocked, &none);
    expect_reused(first, second);
}

// The creator's mask is taken at the call, whatever the creator does next.
static void mask_at_the_moment_of_creation(void) {
    pid_t last = 0;
    for (int i = 0; i < 300; i++) {
        sigset_t expected = set_of(i % 2 ? SIGUSR1 : SIGUSR2);
        int64_t busy = busy_threads();
        set_mask(i % 2 ? SIGUSR1 : SIGUSR2);
        struct run_arg run = {look, &expected, 0};
        pthread_t thread;
        CHECK_OK(pthread_create(&thread, NULL, run_start, &run));
        set_mask(i % 2 ? SIGUSR2 : SIGUSR1);
        CHECK_OK(pthread_join(thread, NULL));
        wait_until_settled(busy);
        if (last)
            expect_reused(last, run.tid);
        last = run.tid;
    }
}

static void everything_blocked(void) {
    sigset_t none = set_of(0), all, expected;
    pid_t first = run_thread(look, &none);
    sigfillset(&all);
    CHECK_OK(pthread_sigmask(SIG_SETMASK, &all, NULL));
    CHECK_OK(pthread_sigmask(SIG_SETMASK, NULL, &expected)); // SIGKILL and libc's own cannot be blocked
    pid_t second = run_thread(look, &expected);
    expect_reused(first, second);
}

static void *create_inside(void *arg) {
    set_mask(SIGHUP);
    sigset_t expected = set_of(SIGHUP);
    run_thread(look, &expected);
    return arg;
}

static void creator_is_a_thread(void) {
    sigset_t none = set_of(0);
    for (int i = 0; i < 4; i++) {
        run_thread(create_inside, NULL);
        run_thread(look, &none);
        run_thread(look, &none);
    }
}

enum { IDLE = 4 };

static void *wait_for_all(void *barrier) {
    pthread_barrier_wait(barrier);
    return NULL;
}

// Leaves so many kernel threads idle.
static void make_idle_threads(void) {
    int64_t busy = busy_threads();
    pthread_barrier_t barrier;
    CHECK_OK(pthread_barrier_init(&barrier, NULL, IDLE));
    pthread_t threads[IDLE];
    for (int i = 0; i < IDLE; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, wait_for_all, &barrier));
    for (int i = 0; i < IDLE; i++)
        CHECK_OK(pthread_join(threads[i], NULL));
    wait_until_settled(busy);
    const volatile struct thrum_cache_counters *c = counters();
    if (c)
        PREMISE(c->idle == IDLE, "%ju threads idle", (uintmax_t)c->idle);
}

static volatile sig_atomic_t handled, handled_elsewhere;
static pid_t main_tid;

static void handle(int signal_number) {
    (void)signal_number;
    if (kernel_tid() != main_tid)
        handled_elsewhere = 1;
    handled++;
}

static const int ordinary_signals[] = {SIGHUP, SIGINT, SIGTERM, SIGCHLD, SIGUSR1, SIGALRM, SIGIO};

static void handle_all(void) {
    main_tid = kernel_tid();
    for (size_t i = 0; i < sizeof ordinary_signals / sizeof *ordinary_signals; i++)
        signal(ordinary_signals[i], handle);
    signal(SIGRTMIN, handle);
    signal(SIGRTMIN + 5, handle);
}

static void send_to_process_and_expect(int signal_number) {
    handled = 0;
    set_mask(signal_number);
    CHECK_SYS(kill(getpid(), signal_number));
    sleep_ms(20);
    CHECK(handled == 0, "signal %d was taken by an idle thread", signal_number);
    sigset_t pending;
    CHECK_SYS(sigpending(&pending));
    CHECK(sigismember(&pending, signal_number) == 1, "signal %d is not pending", signal_number);
    set_mask(0);
    CHECK(handled == 1 && !handled_elsewhere, "signal %d was handled %d times", signal_number, (int)handled);
}

// Main blocks the signal; only an idle thread could take it, and must not.
static void idle_threads_take_no_signal(void) {
    handle_all();
    make_idle_threads();
    for (size_t i = 0; i < sizeof ordinary_signals / sizeof *ordinary_signals; i++)
        send_to_process_and_expect(ordinary_signals[i]);
    send_to_process_and_expect(SIGRTMIN);
    send_to_process_and_expect(SIGRTMIN + 5);
}

// A signal sent to the process while idle threads are there reaches the thread that waits for it.
static void waiting_thread_gets_it(void) {
    make_idle_threads();
    set_mask(SIGUSR1);
    CHECK_SYS(kill(getpid(), SIGUSR1));
    sigset_t wanted = set_of(SIGUSR1);
    struct timespec limit = {5, 0};
    CHECK_EQ(sigtimedwait(&wanted, NULL, &limit), SIGUSR1);
}

static void timer_signals_arrive(void) {
    handle_all();
    make_idle_threads();
    struct itimerval every = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    CHECK_SYS(setitimer(ITIMER_REAL, &every, NULL));
    for (int i = 0; i < 3000 && handled < 50; i++)
        usleep(1000);
    CHECK_SYS(setitimer(ITIMER_REAL, &never, NULL));
    CHECK(handled >= 50, "only %d of 50 ticks arrived", (int)handled);
    CHECK(!handled_elsewhere, "an idle thread took a tick");
}

// libc tells every thread, the idle ones as well, to change its ids, and waits for all of them.
static void setxid_reaches_idle_threads(void) {
    make_idle_threads();
    for (int i = 0; i < 50; i++) {
        CHECK_SYS(setresuid((uid_t)-1, (uid_t)-1, (uid_t)-1));
        CHECK_SYS(setgid(getgid()));
    }
    run_thread(do_nothing, NULL);
    CHECK_SYS(setresgid((gid_t)-1, (gid_t)-1, (gid_t)-1));
}

static void *look_ids(void *arg) {
    const uid_t *wanted = arg;
    CHECK_EQ(syscall(SYS_getuid), *wanted);
    CHECK_EQ(syscall(SYS_geteuid), *wanted);
    CHECK_EQ(syscall(SYS_getgid), *wanted);
    return NULL;
}

static void idle_threads_change_their_ids(void) {
    if (geteuid() != 0)
        CANNOT("only root can change its ids");
    pid_t first = run_thread(do_nothing, NULL);
    make_idle_threads();
    uid_t nobody = 65534;
    CHECK_SYS(setgroups(0, NULL));
    CHECK_SYS(setresgid(nobody, nobody, nobody));
    CHECK_SYS(setresuid(nobody, nobody, nobody));
    const volatile struct thrum_cache_counters *c = counters();
    uint64_t reused = c ? c->reused : 0;
    for (int i = 0; i < IDLE; i++)
        run_thread(look_ids, &nobody);
    if (c)
        PREMISE(c->reused > reused, "nothing was reused after the change of ids (first thread %d)",
                (int)first);
}

static void *change_ids_inside(void *arg) {
    for (int i = 0; i < 20; i++)
        CHECK_SYS(setresuid((uid_t)-1, (uid_t)-1, (uid_t)-1));
    return arg;
}

// The broadcast races with threads that become idle and busy.
static void setxid_while_threads_come_and_go(void) {
    pthread_t thread;
    for (int i = 0; i < 50; i++) {
        CHECK_OK(pthread_create(&thread, NULL, change_ids_inside, NULL));
        for (int j = 0; j < 5; j++) {
            pthread_t other;
            CHECK_OK(pthread_create(&other, NULL, do_nothing, NULL));
            CHECK_OK(pthread_join(other, NULL));
        }
        CHECK_OK(pthread_join(thread, NULL));
    }
}

static const struct check_case cases[] = {
    {"creators-mask", creators_mask, FAILS_WHEN_SKIPPED},
    {"own-changes-end-with-the-thread", own_changes_end_with_the_thread, FAILS_WHEN_SKIPPED},
    {"own-changes-end-with-pthread-exit", own_changes_end_with_pthread_exit, FAILS_WHEN_SKIPPED},
    {"mask-at-the-moment-of-creation", mask_at_the_moment_of_creation, FAILS_WHEN_SKIPPED},
    {"everything-blocked", everything_blocked, FAILS_WHEN_SKIPPED},
    {"creator-is-a-thread", creator_is_a_thread, FAILS_WHEN_SKIPPED},
    {"idle-threads-take-no-signal", idle_threads_take_no_signal, FAILS_WHEN_SKIPPED},
    {"waiting-thread-gets-it", waiting_thread_gets_it, FAILS_WHEN_SKIPPED},
    {"timer-signals-arrive", timer_signals_arrive, HOLDS_WHEN_SKIPPED},
    {"setxid-reaches-idle-threads", setxid_reaches_idle_threads, HOLDS_WHEN_SKIPPED},
    {"idle-threads-change-their-ids", idle_threads_change_their_ids, HOLDS_WHEN_SKIPPED},
    {"setxid-while-threads-come-and-go", setxid_while_threads_come_and_go, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
