// SPDX-License-Identifier: Apache-2.0
//
// Row task-stat: a program that has joined its threads sees by the status of /proc/self/task that they are gone.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "child.h"

enum { IDLE = 3, PATIENCE_MS = 600 };

// What programs that were linked with a libc before 2.33 call.
int old_stat(int, const char *, struct stat *), old_fstatat(int, int, const char *, struct stat *, int);
#ifdef __x86_64__
enum { VERSION = 1 };
__asm__(".symver old_stat, __xstat@GLIBC_2.2.5");
__asm__(".symver old_fstatat, __fxstatat@GLIBC_2.4");
#else
enum { VERSION = 0 };
__asm__(".symver old_stat, __xstat@GLIBC_2.17");
__asm__(".symver old_fstatat, __fxstatat@GLIBC_2.17");
#endif

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
static int by_old_stat(void) {
    struct stat status;
    return old_stat(VERSION, path, &status);
}
static int by_old_fstatat(void) {
    struct stat status;
    return old_fstatat(VERSION, proc_fd, relative, &status, 0);
}
static int by_syscall(void) {
    struct stat status;
    return (int)syscall(SYS_newfstatat, proc_fd, relative, &status, 0);
}
static int by_statx_syscall(void) {
    struct statx status;
    return (int)syscall(SYS_statx, AT_FDCWD, path, 0, STATX_BASIC_STATS, &status);
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
DISAPPEARS(by_old_stat)
DISAPPEARS(by_old_fstatat)
DISAPPEARS(by_syscall)
DISAPPEARS(by_statx_syscall)

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

// What the kernel refuses is refused with a thread that is kept as without, and what it finds leaves errno alone.
static void unreadable_paths(void) {
    enum { PAGE = 4096 };
    struct stat status;
    struct statx more;
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED, "mmap");
    memset(pages, 'a', PAGE);
    CHECK_SYS(mprotect(pages + PAGE, PAGE, PROT_NONE));
    warm_threads(IDLE);
    const char *const bad[] = {(const char *)16, pages + PAGE, pages + PAGE - 4};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        errno = 0;
        CHECK(stat(bad[i], &status) == -1 && errno == EFAULT, "stat of %p", (const void *)bad[i]);
        CHECK(lstat(bad[i], &status) == -1 && errno == EFAULT, "lstat of %p", (const void *)bad[i]);
        CHECK(fstatat(AT_FDCWD, bad[i], &status, 0) == -1 && errno == EFAULT, "fstatat");
        CHECK(statx(AT_FDCWD, bad[i], 0, STATX_BASIC_STATS, &more) == -1 && errno == EFAULT, "statx");
        CHECK(access(bad[i], F_OK) == -1 && errno == EFAULT, "access");
        CHECK(faccessat(AT_FDCWD, bad[i], F_OK, 0) == -1 && errno == EFAULT, "faccessat");
        CHECK(syscall(SYS_newfstatat, AT_FDCWD, bad[i], &status, 0) == -1 && errno == EFAULT, "syscall");
        CHECK(old_stat(VERSION, bad[i], &status) == -1 && errno == EFAULT, "__xstat");
    }
    CHECK(old_stat(VERSION + 77, "/", &status) == -1 && errno == EINVAL, "__xstat of no version");
    errno = E2BIG;
    CHECK_SYS(stat("/proc/self/task/", &status));
    CHECK_EQ(errno, E2BIG);
}

#define CASE(name)                                                                                           \
    { #name, name, FAILS_WHEN_SKIPPED }
static const struct check_case cases[] = {
    CASE(gone_by_stat),
    CASE(gone_by_lstat),
    CASE(gone_by_fstatat),
    CASE(gone_by_statx),
    CASE(gone_by_access),
    CASE(gone_by_number),
    CASE(gone_by_old_stat),
    CASE(gone_by_old_fstatat),
    CASE(gone_by_syscall),
    CASE(gone_by_statx_syscall),
    CASE(links_of_one_thread),
    {"about_others", about_others, HOLDS_WHEN_SKIPPED},
    {"unreadable_paths", unreadable_paths, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
