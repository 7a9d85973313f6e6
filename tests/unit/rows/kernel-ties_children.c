// SPDX-License-Identifier: Apache-2.0
//
// Row kernel-ties: child processes and traced processes belong to the kernel thread that made or attached them. A child
// that asked for a parent-death signal gets it when the thread that made it ends, however it was made.
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

#include "child.h"

enum { WAIT_MS = 3000, WAIT_SKIPPED_MS = 500 };

// The child writes its pid here once it has asked for its signal.
static int report_pipe[2];
enum { REPORT_FD = 100 };

static void make_report_pipe(void) {
    CHECK_SYS(pipe(report_pipe));
    CHECK_SYS(dup2(report_pipe[1], REPORT_FD));
}

static void be_child(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    pid_t self = getpid();
    if (write(REPORT_FD, &self, sizeof self) != sizeof self)
        _exit(3);
    alarm(20);
    for (;;)
        pause();
}

static pid_t reported_child(void) {
    pid_t pid = 0;
    CHECK(read(report_pipe[0], &pid, sizeof pid) == sizeof pid, "the child said nothing");
    return pid;
}

// Is it gone, or a zombie? (Which process may wait for it differs between the ways to make it.)
static int has_ended(pid_t pid) {
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd == -1)
        return 1;
    ssize_t size = read(fd, line, sizeof line - 1);
    close(fd);
    if (size <= 0)
        return 1;
    const char *state = strrchr(line, ')');
    return !state || state[2] == 'Z' || state[2] == 'X';
}

static void expect_to_end(pid_t pid) {
    int wait_ms = row_is_skipped() ? WAIT_SKIPPED_MS : WAIT_MS;
    for (int i = 0; i < wait_ms && !has_ended(pid); i++)
        sleep_ms(1);
    int ended = has_ended(pid);
    kill(pid, SIGKILL);
    CHECK(ended, "the child's parent thread ended %d ms ago and the child got no signal", wait_ms);
}

// ---- ways to make a child -----------------------------------------------------------------------------------------

static pid_t by_fork(void) {
    pid_t pid = fork();
    if (pid == 0)
        be_child();
    return pid;
}
static pid_t by_plain_fork(void) {
    pid_t pid = _Fork();
    if (pid == 0)
        be_child();
    return pid;
}
static pid_t by_raw_clone(void) {
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0)
        be_child();
    return pid;
}
static int clone_start(void *arg) {
    (void)arg;
    be_child();
    return 0;
}
static pid_t by_clone(void) {
    static char stack[65536];
    return clone(clone_start, stack + sizeof stack, SIGCHLD, NULL);
}
static char *const child_argv[] = {"/proc/self/exe", "be_child", NULL};
static pid_t by_vfork(void) {
    pid_t pid = vfork();
    if (pid == 0) {
        execv(child_argv[0], child_argv);
        _exit(3);
    }
    return pid;
}
static pid_t by_posix_spawn(void) {
    pid_t pid;
    CHECK_OK(posix_spawn(&pid, child_argv[0], NULL, NULL, child_argv, environ));
    return pid;
}
static pid_t by_posix_spawnp(void) {
    pid_t pid;
    CHECK_OK(posix_spawnp(&pid, child_argv[0], NULL, NULL, child_argv, environ));
    return pid;
}
static pid_t by_popen(void) {
    char self[512], command[600];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK_SYS(length);
    self[length] = 0;
    snprintf(command, sizeof command, "exec '%s' be_child", self);
    CHECK(popen(command, "w") != NULL, "popen: %s", strerror(errno));
    return 0;
}

static void *make_child(void *way) {
    pid_t pid = (*(pid_t(**)(void))way)();
    CHECK_SYS(pid);
    return NULL;
}

static void *make_child_and_wait(void *way) {
    make_child(way);
    pid_t child = reported_child();
    CHECK(!has_ended(child), "the child ended while its parent thread lived");
    return (void *)(intptr_t)child;
}

static void child_case(pid_t (*way)(void)) {
    make_report_pipe();
    warm_threads(2);
    void *child;
    run_thread_result(make_child_and_wait, &way, &child);
    expect_to_end((pid_t)(intptr_t)child);
}

static void fork_child(void) {
    child_case(by_fork);
}
static void plain_fork_child(void) {
    child_case(by_plain_fork);
}
static void raw_clone_child(void) {
    child_case(by_raw_clone);
}
static void clone_child(void) {
    child_case(by_clone);
}
static void vfork_child(void) {
    child_case(by_vfork);
}
static void posix_spawn_child(void) {
    child_case(by_posix_spawn);
}
static void posix_spawnp_child(void) {
    child_case(by_posix_spawnp);
}
static void popen_child(void) {
    child_case(by_popen);
}

// ---- ptrace -------------------------------------------------------------------------------------------------------

static pid_t traced;

static void *trace(void *arg) {
    CHECK_SYS(ptrace(PTRACE_SEIZE, traced, NULL, PTRACE_O_EXITKILL));
    return arg;
}
static void tracee_of_ended_thread(void) {
    warm_threads(2);
    traced = fork();
    CHECK_SYS(traced);
    if (traced == 0) {
        alarm(20);
        for (;;)
            pause();
    }
    run_thread(trace, NULL);
    expect_to_end(traced);
}

// A child that has ended and was waited for is no tie left: its maker may be reused.
static void *fork_and_wait(void *arg) {
    pid_t pid = fork();
    CHECK_SYS(pid);
    if (pid == 0)
        _exit(0);
    expect_exit(wait_child(pid), 0);
    CHECK_EQ(system("exit 3") >> 8, 3);
    return arg;
}
static void waited_child_does_no_harm(void) {
    for (int i = 0; i < 10; i++)
        run_thread(fork_and_wait, NULL);
}

static const struct check_case cases[] = {
    {"fork_child", fork_child, FAILS_WHEN_SKIPPED},
    {"plain_fork_child", plain_fork_child, FAILS_WHEN_SKIPPED},
    {"raw_clone_child", raw_clone_child, FAILS_WHEN_SKIPPED},
    {"clone_child", clone_child, FAILS_WHEN_SKIPPED},
    {"vfork_child", vfork_child, FAILS_WHEN_SKIPPED},
    {"posix_spawn_child", posix_spawn_child, FAILS_WHEN_SKIPPED},
    {"posix_spawnp_child", posix_spawnp_child, FAILS_WHEN_SKIPPED},
    {"popen_child", popen_child, FAILS_WHEN_SKIPPED},
    {"tracee_of_ended_thread", tracee_of_ended_thread, FAILS_WHEN_SKIPPED},
    {"waited_child_does_no_harm", waited_child_does_no_harm, HOLDS_WHEN_SKIPPED},
};

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "be_child") == 0)
        be_child();
    return check_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
