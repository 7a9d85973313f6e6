// SPDX-License-Identifier: Apache-2.0
//
// Row lineage: niceness, scheduling policy and priority, I/O priority, timer slack. A thread that changed one of its
// own and ended does not leak it; a creator passes it on, as clone does.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "lineage.h"

enum { IOPRIO_WHO_PROCESS = 1, IOPRIO_BEST_EFFORT_LOWEST = 2 << 13 | 7 };

static long look_nice(void) {
    return getpriority(PRIO_PROCESS, 0);
}
static int change_nice(void) {
    errno = 0;
    return nice(5) == -1 && errno ? errno : 0;
}
static int change_priority(void) {
    return setpriority(PRIO_PROCESS, 0, (int)look_nice() + 4) == -1 ? errno : 0;
}
static int change_priority_by_tid(void) {
    return setpriority(PRIO_PROCESS, (id_t)kernel_tid(), (int)look_nice() + 3) == -1 ? errno : 0;
}
LINEAGE(nice, change_nice, look_nice, INHERITED)
LINEAGE(setpriority, change_priority, look_nice, INHERITED)
LINEAGE(setpriority_tid, change_priority_by_tid, look_nice, INHERITED)

static long look_policy(void) {
    return sched_getscheduler(0);
}
static const struct sched_param no_priority = {0};
static int change_policy(void) {
    return sched_setscheduler(0, SCHED_BATCH, &no_priority) == -1 ? errno : 0;
}
static int change_policy_by_pthread(void) {
    return pthread_setschedparam(pthread_self(), SCHED_BATCH, &no_priority);
}
static int change_policy_by_syscall(void) {
    return syscall(SYS_sched_setscheduler, 0, SCHED_IDLE, &no_priority) == -1 ? errno : 0;
}
static int change_policy_for_itself_only(void) {
    const struct sched_param one = {1};
    return sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &one) == -1 ? errno : 0;
}
LINEAGE(sched_setscheduler, change_policy, look_policy, INHERITED)
LINEAGE(pthread_setschedparam, change_policy_by_pthread, look_policy, INHERITED)
LINEAGE(syscall_setscheduler, change_policy_by_syscall, look_policy, INHERITED)
LINEAGE(reset_on_fork, change_policy_for_itself_only, look_policy, NOT_INHERITED)

// The policy as pthreads keeps it, too.
static long look_pthread_policy(void) {
    int policy = -1;
    struct sched_param param;
    CHECK_OK(pthread_getschedparam(pthread_self(), &policy, &param));
    return policy * 1000 + param.sched_priority;
}
static int change_to_fifo(void) {
    const struct sched_param one = {1};
    return pthread_setschedparam(pthread_self(), SCHED_FIFO, &one);
}
static int change_fifo_priority(void) {
    int error = change_to_fifo();
    return error ? error : pthread_setschedprio(pthread_self(), 2);
}
LINEAGE(fifo, change_to_fifo, look_pthread_policy, INHERITED)
LINEAGE(pthread_setschedprio, change_fifo_priority, look_pthread_policy, INHERITED)

// struct sched_attr of sched_setattr(2), which glibc 2.36 does not declare.
struct attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};
static int change_by_setattr(void) {
    struct attr attr = {.size = sizeof attr, .policy = SCHED_BATCH, .nice = (int)look_nice() + 2};
    return syscall(SYS_sched_setattr, 0, &attr, 0) == -1 ? errno : 0;
}
static long look_both(void) {
    return look_policy() * 1000 + look_nice();
}
LINEAGE(sched_setattr, change_by_setattr, look_both, INHERITED)

static long look_ioprio(void) {
    return syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);
}
static int change_ioprio(void) {
    return syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_BEST_EFFORT_LOWEST) == -1 ? errno : 0;
}
LINEAGE(ioprio, change_ioprio, look_ioprio, INHERITED)

static long look_slack(void) {
    return prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
}
static int change_slack(void) {
    return prctl(PR_SET_TIMERSLACK, 123456, 0, 0, 0) == -1 ? errno : 0;
}
static int change_slack_by_syscall(void) {
    return syscall(SYS_prctl, PR_SET_TIMERSLACK, 234567, 0, 0, 0) == -1 ? errno : 0;
}
LINEAGE(timer_slack, change_slack, look_slack, INHERITED)
LINEAGE(timer_slack_syscall, change_slack_by_syscall, look_slack, INHERITED)

// A process that lowers its priority at its start, as daemons do, still has its threads reused.
static void reuse_after_nice(void) {
    PREMISE(change_nice() == 0, "nice: %s", strerror(errno));
    warm_threads(1);
    pid_t first = run_thread(do_nothing, NULL);
    pid_t second = run_thread(do_nothing, NULL);
    if (under_thrum())
        CHECK(first == second, "no reuse after main changed its niceness");
}

// The threads that a creator with a niceness of its own leaves behind when it ends are of no use to others.
static void *change_and_create(void *arg) {
    PREMISE(change_nice() == 0, "nice: %s", strerror(errno));
    run_thread(do_nothing, NULL);
    return arg;
}
static void former_lineages(void) {
    enum { MANY = 300, FEW = 64 + 6 }; // as libthrum-cache(7) promises, and the threads that are not idle
    for (int i = 0; i < MANY; i++)
        run_thread(change_and_create, NULL);
    expect_threads_at_most(FEW);
}

// Set to what it is already: the thread is as new as any other. Each is done by a thread to itself.
static void *set_what_is(void *p) {
    (*(void (**)(void))p)();
    return NULL;
}
static void reused_after(void (*set)(void)) {
    warm_threads(1);
    pid_t first = run_thread(set_what_is, (void *)&set);
    pid_t second = run_thread(set_what_is, (void *)&set);
    expect_reused(first, second);
}
static void same_by_pthread(void) {
    int policy;
    struct sched_param param;
    CHECK_OK(pthread_getschedparam(pthread_self(), &policy, &param));
    CHECK_OK(pthread_setschedparam(pthread_self(), policy, &param));
    CHECK_OK(pthread_setschedprio(pthread_self(), param.sched_priority));
}
static void same_by_sched(void) {
    CHECK_SYS(sched_setscheduler(0, sched_getscheduler(0), &no_priority));
    CHECK_SYS(sched_setparam(kernel_tid(), &no_priority));
}
static void same_nice(void) {
    errno = 0;
    CHECK(nice(0) != -1 || errno == 0, "nice: %s", strerror(errno));
    CHECK_SYS(setpriority(PRIO_PROCESS, 0, (int)look_nice()));
    CHECK_SYS(setpriority(PRIO_PROCESS, (id_t)kernel_tid(), (int)look_nice()));
}
static void same_by_syscall(void) {
    struct attr attr = {.size = sizeof attr, .policy = (uint32_t)look_policy(), .nice = (int)look_nice()};
    CHECK_SYS(syscall(SYS_sched_setattr, 0, &attr, 0));
    CHECK_SYS(syscall(SYS_sched_setscheduler, 0, look_policy(), &no_priority));
    CHECK_SYS(syscall(SYS_sched_setparam, 0, &no_priority));
    CHECK_SYS(syscall(SYS_setpriority, PRIO_PROCESS, 0, look_nice()));
    CHECK_SYS(syscall(SYS_setresuid, -1, geteuid(), -1));
    CHECK_SYS(syscall(SYS_setresgid, -1, getegid(), -1));
}
static void same_slack(void) {
    CHECK_SYS(prctl(PR_SET_TIMERSLACK, look_slack(), 0, 0, 0));
    CHECK_SYS(prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0));
}
static void same_ioprio(void) {
    CHECK_OK(change_ioprio());
}
static void set_pthread_to_same(void) {
    reused_after(same_by_pthread);
}
static void set_sched_to_same(void) {
    reused_after(same_by_sched);
}
static void set_nice_to_same(void) {
    reused_after(same_nice);
}
static void set_by_syscall_to_same(void) {
    reused_after(same_by_syscall);
}
static void set_slack_to_same(void) {
    reused_after(same_slack);
}
static void set_ioprio_to_same(void) {
    if (change_ioprio() != 0) // main: its threads inherit it
        CANNOT("no I/O priorities: %s", strerror(errno));
    reused_after(same_ioprio);
}

// Set by the creator, as Ada's runtime does.
static void *hold_until_told(void *barrier) {
    pthread_barrier_wait((pthread_barrier_t *)barrier);
    return (void *)(intptr_t)kernel_tid();
}
static void set_by_creator_to_same(void) {
    pthread_barrier_t barrier;
    void *tids[2];
    CHECK_OK(pthread_barrier_init(&barrier, NULL, 2));
    warm_threads(1);
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        int64_t busy = busy_threads();
        CHECK_OK(pthread_create(&thread, NULL, hold_until_told, &barrier));
        CHECK_OK(pthread_setschedparam(thread, SCHED_OTHER, &no_priority));
        pthread_barrier_wait(&barrier);
        CHECK_OK(pthread_join(thread, &tids[i]));
        wait_until_settled(busy);
    }
    expect_reused((pid_t)(intptr_t)tids[0], (pid_t)(intptr_t)tids[1]);
}

static void *tid_and_policy(void *unused) {
    (void)unused;
    return (void *)((intptr_t)kernel_tid() << 8 | look_policy());
}

// Attributes that ask for what the creator has; and for what it has not.
static void explicit_scheduling(void) {
    pid_t tids[3];
    pthread_attr_t attributes;
    CHECK_OK(pthread_attr_init(&attributes));
    CHECK_OK(pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED));
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        void *tid;
        int64_t busy = busy_threads();
        if (i == 2)
            CHECK_SYS(change_policy());
        CHECK_OK(pthread_attr_setschedpolicy(&attributes, SCHED_OTHER));
        CHECK_OK(pthread_create(&thread, &attributes, tid_and_policy, NULL));
        CHECK_OK(pthread_join(thread, &tid));
        wait_until_settled(busy);
        tids[i] = (pid_t)((intptr_t)tid >> 8);
        CHECK_EQ((intptr_t)tid & 255, SCHED_OTHER);
    }
    CHECK_OK(pthread_attr_destroy(&attributes));
    expect_reused(tids[0], tids[1]);
    expect_not_reused(tids[1], tids[2]);
}

static const struct check_case cases[] = {
    LINEAGE_CASES(nice),
    LINEAGE_CASES(setpriority),
    LINEAGE_CASES(setpriority_tid),
    LINEAGE_CASES(sched_setscheduler),
    LINEAGE_CASES(pthread_setschedparam),
    LINEAGE_CASES(syscall_setscheduler),
    LINEAGE_CASES_NOT_INHERITED(reset_on_fork),
    LINEAGE_CASES(fifo),
    LINEAGE_CASES(pthread_setschedprio),
    LINEAGE_CASES(sched_setattr),
    LINEAGE_CASES(ioprio),
    LINEAGE_CASES(timer_slack),
    LINEAGE_CASES(timer_slack_syscall),
    {"reuse_after_nice", reuse_after_nice, HOLDS_WHEN_SKIPPED},
    {"set_pthread_to_same", set_pthread_to_same, HOLDS_WHEN_SKIPPED},
    {"set_sched_to_same", set_sched_to_same, HOLDS_WHEN_SKIPPED},
    {"set_nice_to_same", set_nice_to_same, HOLDS_WHEN_SKIPPED},
    {"set_by_syscall_to_same", set_by_syscall_to_same, HOLDS_WHEN_SKIPPED},
    {"set_slack_to_same", set_slack_to_same, HOLDS_WHEN_SKIPPED},
    {"set_ioprio_to_same", set_ioprio_to_same, HOLDS_WHEN_SKIPPED},
    {"set_by_creator_to_same", set_by_creator_to_same, HOLDS_WHEN_SKIPPED},
    {"explicit_scheduling", explicit_scheduling, HOLDS_WHEN_SKIPPED},
    {"former_lineages", former_lineages, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
