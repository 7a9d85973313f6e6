// SPDX-License-Identifier: Apache-2.0
//
// Row "sigpending": a signal that is pending for a thread when it ends dies with it. It reaches neither the next
// thread nor anyone else, also when it is sent to the kernel thread while that is idle. A signal that is pending for
// the process survives, and is no reason to give the thread up.

#include <signal.h>
#include <sys/wait.h>

#include "check.h"

static volatile sig_atomic_t handled;

static void handle(int signal_number) {
    (void)signal_number;
    handled++;
}

static void block(int signal_number) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
}

static void unblock(int signal_number) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    CHECK_OK(pthread_sigmask(SIG_UNBLOCK, &set, NULL));
}

static void expect_pending(int signal_number, int expected) {
    sigset_t pending;
    CHECK_SYS(sigpending(&pending));
    CHECK(sigismember(&pending, signal_number) == expected, "signal %d is %spending", signal_number,
          expected ? "not " : "");
}

static void *leave_pending(void *arg) {
    block(SIGUSR1);
    CHECK_OK(pthread_kill(pthread_self(), SIGUSR1));
    expect_pending(SIGUSR1, 1);
    return arg;
}

static void *leave_pending_and_exit(void *arg) {
    leave_pending(arg);
    pthread_exit(arg);
}

static void *expect_nothing(void *arg) {
    expect_pending(SIGUSR1, 0);
    expect_pending(SIGRTMIN, 0);
    unblock(SIGUSR1);
    unblock(SIGRTMIN);
    sleep_ms(2);
    CHECK(handled == 0, "a signal of the previous thread was delivered");
    return arg;
}

static void after(void *(*start)(void *)) {
    signal(SIGUSR1, handle);
    signal(SIGRTMIN, handle);
    for (int i = 0; i < 3; i++) {
        pid_t before = run_thread(do_nothing, NULL);
        pid_t first = run_thread(start, NULL), second = run_thread(expect_nothing, NULL);
        expect_reused(before, first);
        CHECK_EQ(handled, 0);
        expect_not_reused(first, second);
    }
}

static void unblocked_creator(void) {
    after(leave_pending);
}

static void unblocked_creator_after_pthread_exit(void) {
    after(leave_pending_and_exit);
}

// The next thread has the signal blocked as well, and sees nothing of it.
static void blocking_creator(void) {
    block(SIGUSR1);
    block(SIGRTMIN);
    after(leave_pending);
}

static void *leave_queue(void *arg) {
    block(SIGRTMIN);
    for (int i = 0; i < 5; i++)
        CHECK_OK(pthread_sigqueue(pthread_self(), SIGRTMIN, (union sigval){i}));
    return arg;
}

static void queued_signals(void) {
    after(leave_queue);
}

static void *become_ready_and_block(void *flag) {
    block(SIGUSR1);
    __atomic_store_n((int *)flag, 1, __ATOMIC_RELEASE);
    sleep_ms(1);
    return NULL;
}

// Sent by another thread, over and over, while the thread ends.
static void sent_while_ending(void) {
    signal(SIGUSR1, handle);
    for (int i = 0; i < 100; i++) {
        int64_t busy = busy_threads();
        int flag = 0;
        pthread_t thread;
        CHECK_OK(pthread_create(&thread, NULL, become_ready_and_block, &flag));
        while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE))
            sleep_ms(0);
        while (pthread_tryjoin_np(thread, NULL) == EBUSY)
            pthread_kill(thread, SIGUSR1);
        wait_until_settled(busy);
        run_thread(expect_nothing, NULL);
    }
}

enum sender { FROM_THIS_PROCESS, FROM_ANOTHER_PROCESS };

// To a thread of this process that has ended: glibc alone answers ESRCH.
static void send_to_stale_tid(pid_t process, pid_t tid, int signal_number) {
    if (syscall(SYS_tgkill, process, tid, signal_number) != 0)
        CHECK_EQ(errno, ESRCH);
}

static void send_all(pid_t tid, enum sender sender, const int *signals) {
    pid_t process = getpid(), child = 0;
    if (sender == FROM_ANOTHER_PROCESS) {
        child = fork();
        CHECK_SYS(child);
    }
    if (child == 0)
        for (; *signals != 0; signals++)
            send_to_stale_tid(process, tid, *signals);
    if (sender == FROM_THIS_PROCESS)
        return;
    if (child == 0)
        _exit(0);
    int status;
    CHECK_SYS(waitpid(child, &status, 0));
    CHECK_EQ(status, 0);
}

// By its old tid, to a kernel thread that is idle.
static void sent_to_idle_thread(enum sender sender) {
    const int signals[] = {SIGUSR1, SIGRTMIN, SIGRTMIN, 0};
    signal(SIGUSR1, handle);
    signal(SIGRTMIN, handle);
    for (int i = 0; i < 5; i++) {
        pid_t first = run_thread(do_nothing, NULL), second = run_thread(do_nothing, NULL);
        expect_reused(first, second);
        send_all(second, sender, signals);
        run_thread(expect_nothing, NULL);
        CHECK_EQ(handled, 0);
    }
}

static void sent_to_an_idle_thread(void) {
    sent_to_idle_thread(FROM_THIS_PROCESS);
}

// The kernel delivers those: the front end sees nothing of them.
static void sent_by_another_process(void) {
    sent_to_idle_thread(FROM_ANOTHER_PROCESS);
}

static void sent_by_another_process_creator_blocks(void) {
    block(SIGUSR1);
    block(SIGRTMIN);
    sent_to_idle_thread(FROM_ANOTHER_PROCESS);
}

static void *see_pending_for_process(void *arg) {
    expect_pending(SIGUSR1, 1);
    return arg;
}

// A signal of the same number is pending for the process, which blocks it: that one must stay.
static void sent_by_another_process_and_to_the_process(void) {
    const int signals[] = {SIGUSR1, 0};
    signal(SIGUSR1, handle);
    block(SIGUSR1);
    pid_t first = run_thread(do_nothing, NULL), second = run_thread(do_nothing, NULL);
    expect_reused(first, second);
    CHECK_SYS(kill(getpid(), SIGUSR1));
    send_all(second, FROM_ANOTHER_PROCESS, signals);
    run_thread(see_pending_for_process, NULL);
    run_thread(see_pending_for_process, NULL);
    CHECK_EQ(handled, 0);
    unblock(SIGUSR1);
    CHECK_EQ(handled, 1);
}

// One whose default action would end the process.
static void fatal_signal_to_an_idle_thread(void) {
    const int signals[] = {SIGTERM, SIGALRM, 0};
    pid_t first = run_thread(do_nothing, NULL), second = run_thread(do_nothing, NULL);
    expect_reused(first, second);
    send_all(second, FROM_ANOTHER_PROCESS, signals);
    sleep_ms(20);
    run_thread(do_nothing, NULL);
    run_thread(do_nothing, NULL);
}

// Pending for the process: visible in every thread, no reason to retire, still there for any thread to take.
static void pending_for_the_process(void) {
    signal(SIGUSR1, handle);
    block(SIGUSR1);
    CHECK_SYS(kill(getpid(), SIGUSR1));
    pid_t first = run_thread(see_pending_for_process, NULL),
          second = run_thread(see_pending_for_process, NULL);
    pid_t third = run_thread(see_pending_for_process, NULL);
    CHECK_EQ(handled, 0);
    expect_pending(SIGUSR1, 1);
    unblock(SIGUSR1);
    CHECK_EQ(handled, 1);
    expect_pending(SIGUSR1, 0);
    expect_reused(first, second);
    expect_reused(second, third);
}

static void *take_pending(void *arg) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    block(SIGUSR2);
    CHECK_OK(pthread_kill(pthread_self(), SIGUSR2));
    int taken;
    CHECK_OK(sigwait(&set, &taken));
    CHECK_EQ(taken, SIGUSR2);
    return arg;
}

// A signal that the thread took itself leaves nothing behind.
static void taken_signals_are_no_reason(void) {
    pid_t first = run_thread(take_pending, NULL), second = run_thread(take_pending, NULL);
    expect_reused(first, second);
}

static const struct check_case cases[] = {
    {"unblocked-creator", unblocked_creator, FAILS_WHEN_SKIPPED},
    {"unblocked-creator-after-pthread-exit", unblocked_creator_after_pthread_exit, FAILS_WHEN_SKIPPED},
    {"blocking-creator", blocking_creator, FAILS_WHEN_SKIPPED},
    {"queued-signals", queued_signals, FAILS_WHEN_SKIPPED},
    {"sent-while-ending", sent_while_ending, FAILS_WHEN_SKIPPED},
    {"sent-to-an-idle-thread", sent_to_an_idle_thread, HOLDS_WHEN_SKIPPED}, // row stale's doing
    {"sent-by-another-process", sent_by_another_process, FAILS_WHEN_SKIPPED},
    {"sent-by-another-process-creator-blocks", sent_by_another_process_creator_blocks, FAILS_WHEN_SKIPPED},
    {"sent-by-another-process-and-to-the-process", sent_by_another_process_and_to_the_process,
     HOLDS_WHEN_SKIPPED},
    {"fatal-signal-to-an-idle-thread", fatal_signal_to_an_idle_thread, FAILS_WHEN_SKIPPED},
    {"pending-for-the-process", pending_for_the_process, HOLDS_WHEN_SKIPPED},
    {"taken-signals-are-no-reason", taken_signals_are_no_reason, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
