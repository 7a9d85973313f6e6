// SPDX-License-Identifier: Apache-2.0
//
// Row task-stat: a program that has joined its threads sees by the status of /proc/self/task that they are gone.
#include <fcntl.h>
#include <sys/stat.h>

#include "child.h"

enum { IDLE = 3, PATIENCE_MS = 600 };

static int proc_fd;
static char path[128], relative[32];

static void tell_paths(pid_t tid) {
    snprintf(path, sizeof path, "/proc/self/task/%d", (int)tid);
    snprintf(relative, sizeof relative, "self/task/%d/", (int)tid);
}

static int by_stat(void) {
    struct stat status;
    return stat(path, &status);
}
static int by_lstat(void) {
    struct stat status;
    return lstat(path, &status);
}
static int by_fstatat(void) {
    struct stat status;
    return fstatat(proc_fd, relative, &status, 0);
}
static int by_statx(void) {
    struct statx status;
    return statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &status);
}
static int by_access(void) {
    return access(path, F_OK);
}
static int by_number(void) {
    snprintf(path + strlen("/proc/"), sizeof path - strlen("/proc/"), "%d/task/%s", (int)getpid(),
             relative + strlen("self/task/"));
    return by_stat();
}

// As a sandbox does: asked again and again, for a while.
static void disappears(int (*ask)(void)) {
    proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_SYS(proc_fd);
    warm_threads(IDLE);
    tell_paths(run_thread(do_nothing, NULL));
    int answer = 0;
    for (int i = 0; i < PATIENCE_MS && (answer = ask()) == 0; i++)
        sleep_ms(1);
    CHECK(answer == -1 && errno == ENOENT, "the task of a joined thread is still there");
}

#define DISAPPEARS(how)                                                                                      \
    static void gone_##how(void) {                                                                           \
        disappears(how);                                                                                     \
    }
DISAPPEARS(by_stat)
DISAPPEARS(by_lstat)
DISAPPEARS(by_fstatat)
DISAPPEARS(by_statx)
DISAPPEARS(by_access)
DISAPPEARS(by_number)

// One thread makes three links.
static void links_of_one_thread(void) {
    struct stat status;
    warm_threads(IDLE);
    for (int i = 0; i < PATIENCE_MS && stat("/proc/self/task/", &status) == 0 && status.st_nlink != 3; i++)
        sleep_ms(1);
    CHECK_EQ(status.st_nlink, 3);
}

// A question about a thread that runs, or about another file, costs no idle thread.
static void *ask_about_itself(void *arg) {
    struct stat status;
    tell_paths(kernel_tid());
    CHECK_SYS(stat(path, &status));
    CHECK_SYS(stat("/proc/self/status", &status));
    return arg;
}
static void about_others(void) {
    warm_threads(IDLE);
    pid_t first = run_thread(ask_about_itself, NULL);
    expect_reused(first, run_thread(ask_about_itself, NULL));
}

#define CASE(name)                                                                                           \
    { #name, name, FAILS_WHEN_SKIPPED }
static const struct check_case cases[] = {
    CASE(gone_by_stat),        CASE(gone_by_lstat),
    CASE(gone_by_fstatat),     CASE(gone_by_statx),
    CASE(gone_by_access),      CASE(gone_by_number),
    CASE(links_of_one_thread), {"about_others", about_others, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
