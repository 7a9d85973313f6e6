// SPDX-License-Identifier: Apache-2.0
//
// Row lineage: threads that stopped sharing something with the rest of their process (unshare, setns), and calls that
// need a process of one thread: once its threads were joined, they must work.
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "lineage.h"

static int as_error(long result) {
    return result == -1 ? errno : 0;
}

// Root, working folder, umask. (umask(2) would change it for a moment, and other threads look at the same time.)
static long look_umask(void) {
    char line[128];
    unsigned mask = 0;
    FILE *status = fopen("/proc/thread-self/status", "re");
    CHECK(status != NULL, "/proc/thread-self/status: %s", strerror(errno));
    while (fgets(line, sizeof line, status) && sscanf(line, "Umask: %o", &mask) != 1) {
    }
    fclose(status);
    return mask;
}
static int change_fs(void) {
    if (unshare(CLONE_FS) == -1)
        return errno;
    umask(0135);
    return 0;
}
static int change_fs_by_syscall(void) {
    if (syscall(SYS_unshare, CLONE_FS) == -1)
        return errno;
    umask(0137);
    return 0;
}
LINEAGE(unshare_fs, change_fs, look_umask, INHERITED)
LINEAGE(syscall_unshare_fs, change_fs_by_syscall, look_umask, INHERITED)

// Later threads share main's again, in both directions.
static void *set_umask(void *arg) {
    umask(0123);
    return arg;
}
static void fs_still_shared(void) {
    warm_threads(LINEAGE_IDLE);
    umask(022);
    run_thread(lineage_changer, (void *)&unshare_fs_lineage);
    run_thread(set_umask, NULL);
    CHECK_EQ(look_umask(), 0123);
}

enum { FD = 200 };
static long look_fd(void) {
    return fcntl(FD, F_GETFD) != -1;
}
static int change_files(void) {
    if (unshare(CLONE_FILES) == -1)
        return errno;
    return dup2(STDERR_FILENO, FD) == -1 ? errno : 0;
}
LINEAGE(unshare_files, change_files, look_fd, INHERITED)

static void *open_fd(void *arg) {
    CHECK_SYS(dup2(STDERR_FILENO, FD + 1));
    return arg;
}
static void files_still_shared(void) {
    warm_threads(LINEAGE_IDLE);
    run_thread(lineage_changer, (void *)&unshare_files_lineage);
    run_thread(open_fd, NULL);
    CHECK(fcntl(FD + 1, F_GETFD) != -1, "what a later thread opened is not open in main");
}

// A namespace of the thread's own, by unshare and by setns.
static long look_host(void) {
    struct utsname name;
    CHECK_SYS(uname(&name));
    long hash = 0;
    for (const char *p = name.nodename; *p; p++)
        hash = hash * 31 % 1000003 + *p;
    return hash;
}
static int change_uts(void) {
    static const char name[] = "thrum-row-lineage";
    if (unshare(CLONE_NEWUTS) == -1)
        return errno;
    return as_error(sethostname(name, sizeof name - 1));
}
LINEAGE(unshare_uts, change_uts, look_host, INHERITED)

static int other_uts = -1;
static void *make_other_uts(void *arg) {
    int error = change_uts();
    if (error)
        CANNOT("unshare(CLONE_NEWUTS): %s", strerror(error));
    other_uts = open("/proc/thread-self/ns/uts", O_RDONLY | O_CLOEXEC);
    CHECK_SYS(other_uts);
    return arg;
}
static int change_by_setns(void) {
    return as_error(setns(other_uts, CLONE_NEWUTS));
}
LINEAGE(setns_inner, change_by_setns, look_host, INHERITED)

static void setns_ended(void) {
    run_thread(make_other_uts, NULL);
    setns_inner_ended();
}
static void setns_passed_on(void) {
    run_thread(make_other_uts, NULL);
    setns_inner_passed_on();
}
static void setns_of_main(void) {
    run_thread(make_other_uts, NULL);
    setns_inner_of_main();
}

// What needs a process of one thread. Tried in a child process first: it may not be allowed here at all.
static int (*alone)(void);
static void try_alone(void) {
    int error = alone();
    if (error)
        CANNOT("not even in a process of one thread: %s", strerror(error));
}
struct waiter {
    int flag;
    pid_t tid;
};
static void *wait_for_flag(void *argument) {
    struct waiter *waiter = argument;
    waiter->tid = kernel_tid();
    await_flag(&waiter->flag);
    return NULL;
}

static void needs_one_thread(int (*call)(void)) {
    alone = call;
    expect_exit(child_status(try_alone, 10), 0);
    warm_threads(LINEAGE_IDLE);

    // With another thread running it fails, as ever.
    struct waiter waiter = {0, 0};
    pthread_t other;
    CHECK_OK(pthread_create(&other, NULL, wait_for_flag, &waiter));
    CHECK_EQ(call(), EINVAL);
    set_flag(&waiter.flag);
    CHECK_OK(pthread_join(other, NULL));
    wait_until_gone(waiter.tid);

    CHECK_EQ(call(), 0);
    warm_threads(LINEAGE_IDLE);
}

static int new_user(void) {
    return as_error(unshare(CLONE_NEWUSER));
}
static int new_user_by_syscall(void) {
    return as_error(syscall(SYS_unshare, CLONE_NEWUSER));
}
static int own_memory(void) {
    return as_error(unshare(CLONE_VM | CLONE_SIGHAND | CLONE_THREAD));
}
static int enter_mount_namespace(void) {
    int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    CHECK_SYS(fd);
    int error = as_error(setns(fd, CLONE_NEWNS));
    close(fd);
    return error;
}

static long look_user_namespace(void) {
    struct stat info;
    CHECK_SYS(stat("/proc/thread-self/ns/user", &info));
    return (long)info.st_ino;
}
static void *look_user_namespace_start(void *arg) {
    (void)arg;
    return (void *)look_user_namespace();
}

static void user_namespace_alone(void) {
    needs_one_thread(new_user);
    void *seen;
    for (int i = 0; i < LINEAGE_LOOKS; i++) {
        run_thread_result(look_user_namespace_start, NULL, &seen);
        CHECK_EQ((long)seen, look_user_namespace());
    }
}
static void user_namespace_by_syscall_alone(void) {
    needs_one_thread(new_user_by_syscall);
}
static void memory_alone(void) {
    needs_one_thread(own_memory);
}
static void setns_mount_alone(void) {
    needs_one_thread(enter_mount_namespace);
}

static const struct check_case cases[] = {
    LINEAGE_CASES(unshare_fs),
    LINEAGE_CASES(syscall_unshare_fs),
    {"fs_still_shared", fs_still_shared, FAILS_WHEN_SKIPPED},
    LINEAGE_CASES(unshare_files),
    {"files_still_shared", files_still_shared, FAILS_WHEN_SKIPPED},
    LINEAGE_CASES(unshare_uts),
    LINEAGE_CASES(setns),
    {"user_namespace_alone", user_namespace_alone, FAILS_WHEN_SKIPPED},
    {"user_namespace_by_syscall_alone", user_namespace_by_syscall_alone, FAILS_WHEN_SKIPPED},
    {"memory_alone", memory_alone, FAILS_WHEN_SKIPPED},
    {"setns_mount_alone", setns_mount_alone, FAILS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
