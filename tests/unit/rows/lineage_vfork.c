// SPDX-License-Identifier: Apache-2.0
//
// Row lineage, and fork: a child that shares its parent's memory until it has another program (vfork, clone with
// CLONE_VM) changes itself. That is its own affair: the parent's threads are reused as before, and nothing of what the
// child's calls would mean for the parent is noted.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "child.h"

// ---- what a child does; it has nothing to say -------------------------------------------------------------------

static void change_nice(void) {
    setpriority(PRIO_PROCESS, 0, 5);
    nice(1);
}
static void change_nice_of_group(void) {
    setpgid(0, 0);
    setpriority(PRIO_PGRP, 0, 5);
    syscall(SYS_setpriority, PRIO_PGRP, 0, 6);
}
static void change_scheduling(void) {
    const struct sched_param param = {0};
    sched_setscheduler(0, SCHED_BATCH, &param);
    sched_setparam(0, &param);
    syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &param);
}
static void change_privileges(void) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setfsuid(getuid());
    setfsgid(getgid() + 1);
}
static void change_personality(void) {
    personality(ADDR_NO_RANDOMIZE);
}
static void install_filter(void) {
    struct sock_filter allow = {.code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW};
    const struct sock_fprog program = {1, &allow};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}
static void leave_file_system(void) {
    unshare(CLONE_FS);
    syscall(SYS_unshare, CLONE_FS);
}
static void forbid_ticks(void) {
#ifdef __x86_64__
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
#endif
}
static void change_affinity(void) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
}
static void change_addresses(void) {
    static long word;
    static struct {
        void *next;
        long offset;
        void *pending;
    } head = {&head, 0, NULL};
    syscall(SYS_set_tid_address, &word);
    syscall(SYS_set_robust_list, &head, sizeof head);
}
static void leave_by_exit(void) {
    syscall(SYS_exit, 0);
}

static void (*const changes[])(void) = {
    change_nice,        change_nice_of_group, change_scheduling, change_privileges,
    change_personality, install_filter,       leave_file_system, forbid_ticks,
    change_affinity,    change_addresses,     leave_by_exit,
};
enum { CHANGES = sizeof changes / sizeof changes[0], IDLE = 3 };

// ---- how it is made ----------------------------------------------------------------------------------------------

static void by_vfork(void (*change)(void)) {
    pid_t pid = vfork();
    CHECK_SYS(pid);
    if (pid == 0) {
        change();
        _exit(0);
    }
    expect_exit(wait_child(pid), 0);
}

static int run_change(void *change) {
    (*(void (**)(void))change)();
    return 0;
}
static void by_clone(void (*change)(void)) {
    static _Alignas(16) char stack[65536];
    pid_t pid = clone(run_change, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &change);
    CHECK_SYS(pid);
    expect_exit(wait_child(pid), 0);
}

static void (*const ways[])(void (*)(void)) = {by_vfork, by_clone};
enum { WAYS = sizeof ways / sizeof ways[0] };

// ---- of main -------------------------------------------------------------------------------------------------------

static void children_of_main(void) {
    warm_threads(IDLE);
    pid_t usual = run_thread(do_nothing, NULL);
    for (int way = 0; way < WAYS; way++)
        for (int i = 0; i < CHANGES; i++) {
            ways[way](changes[i]);
            pid_t now = run_thread(do_nothing, NULL);
            if (!under_thrum())
                continue;
            CHECK(strcmp(cache_state(), "on") == 0, "change %d, way %d: the cache is off: %s", i, way,
                  cache_state());
            CHECK(now == usual, "change %d, way %d: thread %d was not reused", i, way, (int)usual);
            CHECK_EQ(counters()->culled, 0);
        }
}

// ---- of a thread ----------------------------------------------------------------------------------------------------

static int change_now, way_now;
static void *make_child_and_create(void *arg) {
    ways[way_now](changes[change_now]);
    pid_t first = run_thread(do_nothing, NULL), second = run_thread(do_nothing, NULL);
    CHECK(!under_thrum() || first == second, "change %d: threads of a parent are not reused any more",
          change_now);
    return arg;
}
static void children_of_a_thread(void) {
    warm_threads(IDLE);
    for (way_now = 0; way_now < WAYS; way_now++)
        for (change_now = 0; change_now < CHANGES; change_now++) {
            void *result;
            int self;
            run_thread_result(make_child_and_create, &self, &result);
            CHECK(result == &self, "change %d, way %d: the parent ended with %p", change_now, way_now,
                  result);
        }
    CHECK(!under_thrum() || strcmp(cache_state(), "on") == 0, "the cache is off: %s", cache_state());
}

static const struct check_case cases[] = {
    {"children_of_main", children_of_main, HOLDS_WHEN_SKIPPED},
    {"children_of_a_thread", children_of_a_thread, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
