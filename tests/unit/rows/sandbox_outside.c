// SPDX-License-Identifier: Apache-2.0
//
// Row sandbox: programs that are started under a seccomp filter, as by systemd's SystemCallFilter= or in a container.
// Where the filter refuses or kills for what reuse needs the cache is off, else it is on; the program never notices.
#include <grp.h>
#include <sched.h>

#include "filter.h"

static void use_threads(void) {
    pthread_t threads[4];
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 4; i++)
            CHECK_OK(pthread_create(&threads[i], NULL, do_nothing, NULL));
        for (int i = 0; i < 4; i++)
            CHECK_OK(pthread_join(threads[i], NULL));
    }
}

static void expect_off(const long *calls, unsigned action) {
    if (!restarted_under(calls, action))
        return;
    use_threads();
    if (under_thrum())
        CHECK(strcmp(cache_state(), "on") != 0, "the cache is on");
}

static void expect_on(const long *calls, unsigned action) {
    if (!restarted_under(calls, action))
        return;
    use_threads();
    if (under_thrum()) {
        CHECK(strcmp(cache_state(), "on") == 0, "the cache is off: %s", cache_state());
        pid_t first = run_thread(do_nothing, NULL);
        expect_reused(first, run_thread(do_nothing, NULL));
    }
}

// systemd's sets "@resources" and "@privileged", which its manual proposes to take away from a service.
static const long resources[] = {SYS_ioprio_set,
                                 SYS_mbind,
                                 SYS_migrate_pages,
                                 SYS_move_pages,
                                 SYS_sched_setaffinity,
                                 SYS_sched_setattr,
                                 SYS_sched_setparam,
                                 SYS_sched_setscheduler,
                                 SYS_set_mempolicy,
                                 SYS_setpriority,
                                 SYS_setrlimit,
                                 SYS_acct,
                                 SYS_bpf,
                                 SYS_capset,
                                 SYS_chroot,
                                 SYS_fanotify_init,
                                 SYS_pivot_root,
                                 SYS_quotactl,
                                 SYS_setdomainname,
                                 SYS_setfsuid,
                                 SYS_setgroups,
                                 SYS_sethostname,
                                 SYS_setresuid,
                                 SYS_setreuid,
                                 SYS_setuid,
                                 SYS_vhangup,
                                 -1};
static void without_resources_kill(void) {
    expect_off(resources, SECCOMP_RET_KILL_PROCESS);
}
static void without_resources_refuse(void) {
    expect_off(resources, SECCOMP_RET_ERRNO | EPERM);
}

// "@debug" and "@ipc"'s reading of other processes' memory: what debuggers use.
static const long debugging[] = {
    SYS_ptrace, SYS_perf_event_open, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_pidfd_getfd,
    -1};
static void without_debugging_kill(void) {
    expect_on(debugging, SECCOMP_RET_KILL_PROCESS);
}

// Each of the calls that reuse makes.
static const long pending[] = {SYS_rt_sigpending, -1}, residency[] = {SYS_mincore, -1},
                  usage[] = {SYS_getrusage, -1}, stacks[] = {SYS_sigaltstack, -1},
                  robust[] = {SYS_get_robust_list, -1}, names[] = {SYS_prctl, -1},
                  own_id[] = {SYS_gettid, -1}, affinity[] = {SYS_sched_getaffinity, -1},
                  attributes[] = {SYS_sched_getattr, -1}, aimed[] = {SYS_tgkill, -1},
                  taken[] = {SYS_rt_sigtimedwait, -1};
static void without_each(void) {
    static const long *const all[] = {pending, residency, usage,      stacks, robust, names,
                                      own_id,  affinity,  attributes, aimed,  taken};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fflush(NULL);
        pid_t pid = fork();
        CHECK_SYS(pid);
        if (pid == 0) {
            static struct filter filter;
            char *argv[] = {check_argv[0], (char *)"threads_only", NULL};
            filter_make(&filter, all[i], SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW);
            filter_install(&filter);
            execv("/proc/self/exe", argv);
            _exit(CHECK_EXIT_CANNOT);
        }
        expect_exit(wait_child(pid), 0);
    }
}
static void threads_only(void) {
    use_threads();
}

// Containers refuse io_uring. It is not asked about then, and the rest continues.
static const long uring[] = {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, -1};
static void without_uring_kill(void) {
    expect_on(uring, SECCOMP_RET_KILL_PROCESS);
}
static void without_uring_refuse(void) {
    expect_on(uring, SECCOMP_RET_ERRNO | EPERM);
}
static void harmless(void) {
    static const long none[] = {-1};
    expect_on(none, SECCOMP_RET_KILL_PROCESS);
}

// A trap is the program's own to handle.
static void without_resources_trap(void) {
    expect_off(resources, SECCOMP_RET_TRAP);
}

// What /proc says of filters comes behind the groups, which may be many.
static void with_many_groups(void) {
    enum { MANY = 1000 };
    gid_t groups[MANY];
    for (unsigned i = 0; i < MANY; i++)
        groups[i] = 1000000 + i;
    if (getgroups(0, NULL) != MANY && setgroups(MANY, groups) != 0)
        CANNOT("setgroups: %s", strerror(errno));
    expect_off(resources, SECCOMP_RET_KILL_PROCESS);
}

// The question leaves no child to wait for, and no signal.
static volatile int child_signals;
static void count_child(int sig) {
    (void)sig;
    child_signals++;
}
static void nothing_to_wait_for(void) {
    if (!restarted_under(resources, SECCOMP_RET_KILL_PROCESS))
        return;
    signal(SIGCHLD, count_child);
    use_threads();
    CHECK(waitpid(-1, NULL, WNOHANG | __WALL) == -1 && errno == ECHILD, "there is a child");
    CHECK_EQ(child_signals, 0);
}

static const struct check_case cases[] = {
    {"without_resources_kill", without_resources_kill, FAILS_WHEN_SKIPPED},
    {"without_resources_refuse", without_resources_refuse, FAILS_WHEN_SKIPPED},
    {"without_resources_trap", without_resources_trap, FAILS_WHEN_SKIPPED},
    {"without_debugging_kill", without_debugging_kill, HOLDS_WHEN_SKIPPED},
    {"without_each", without_each, FAILS_WHEN_SKIPPED},
    {"threads_only", threads_only, HOLDS_WHEN_SKIPPED},
    {"without_uring_kill", without_uring_kill, FAILS_WHEN_SKIPPED},
    {"without_uring_refuse", without_uring_refuse, HOLDS_WHEN_SKIPPED},
    {"harmless", harmless, HOLDS_WHEN_SKIPPED},
    {"with_many_groups", with_many_groups, FAILS_WHEN_SKIPPED},
    {"nothing_to_wait_for", nothing_to_wait_for, FAILS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
