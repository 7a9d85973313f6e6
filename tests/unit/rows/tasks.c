// SPDX-License-Identifier: Apache-2.0
//
// Row tasks: a program that lists its own tasks finds its threads and no other, however it reads the list; and threads
// are reused afterwards as before.
#include <dirent.h>
#include <fcntl.h>

#include "child.h"

enum { IDLE = 5 };

static int is_task(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static int count_entries(DIR *folder) {
    int count = 0;
    CHECK(folder != NULL, "opendir: %s", strerror(errno));
    for (const struct dirent *entry; (entry = readdir(folder));)
        count += is_task(entry);
    return count;
}

static int by_opendir(void) {
    DIR *folder = opendir("/proc/self/task");
    int count = count_entries(folder);
    CHECK_SYS(closedir(folder));
    return count;
}
static int by_number(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/", (int)getpid());
    DIR *folder = opendir(path);
    int count = count_entries(folder);
    CHECK_SYS(closedir(folder));
    return count;
}
static int by_descriptor(void) {
    DIR *folder = fdopendir(open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    int count = count_entries(folder);
    CHECK_SYS(closedir(folder));
    return count;
}
static int by_scandir(void) {
    struct dirent **names;
    int count = scandir("/proc/self/task", &names, is_task, NULL);
    CHECK_SYS(count);
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return count;
}
static int by_scandirat(void) {
    struct dirent **names;
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int count = scandirat(proc, "self/task", &names, is_task, NULL);
    CHECK_SYS(count);
    CHECK_SYS(close(proc));
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return count;
}

// By the system call: a list that was read before is read again from its beginning.
static int by_reading(ssize_t (*read)(int, void *, size_t)) {
    static int folder = -1;
    _Alignas(struct dirent64) char entries[256]; // less than the whole list
    int count = 0;
    if (folder < 0)
        folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_SYS(lseek(folder, 0, SEEK_SET));
    for (ssize_t length; (length = read(folder, entries, sizeof entries)) > 0;)
        for (ssize_t at = 0; at < length; at += ((struct dirent64 *)(entries + at))->d_reclen)
            count += ((struct dirent64 *)(entries + at))->d_name[0] != '.';
    return count;
}
static int by_getdents(void) {
    return by_reading(getdents64);
}
static ssize_t read_by_syscall(int folder, void *entries, size_t size) {
    return syscall(SYS_getdents64, folder, entries, size);
}
static int by_syscall(void) {
    return by_reading(read_by_syscall);
}
static int by_relative_path(void) {
    int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_SYS(chdir("/proc"));
    DIR *folder = opendir("self/task");
    int count = count_entries(folder);
    CHECK_SYS(closedir(folder));
    CHECK_SYS(fchdir(here));
    CHECK_SYS(close(here));
    return count;
}

// Less than idle threads stay.
static int patience(void) {
    return row_is_skipped() ? 200 : 4000;
}

// What has just ended may be listed for a moment, without thrum too.
static void expect_listed(int (*list)(void), int expected) {
    int count = -1;
    for (int64_t end = now_ms() + patience(); (count = list()) != expected && now_ms() < end;)
        sleep_ms(1);
    CHECK_EQ(count, expected);
}

static void only_main(int (*list)(void)) {
    for (int round = 0; round < 3; round++) {
        warm_threads(IDLE);
        expect_listed(list, 1);
        expect_reused(run_thread(do_nothing, NULL), run_thread(do_nothing, NULL));
    }
}
static void list_by_opendir(void) {
    only_main(by_opendir);
}
static void list_by_number(void) {
    only_main(by_number);
}
static void list_by_descriptor(void) {
    only_main(by_descriptor);
}
static void list_by_scandir(void) {
    only_main(by_scandir);
}
static void list_by_scandirat(void) {
    only_main(by_scandirat);
}
static void list_by_getdents(void) {
    only_main(by_getdents);
}
static void list_by_syscall(void) {
    only_main(by_syscall);
}
static void list_by_relative_path(void) {
    only_main(by_relative_path);
}

// One that runs is listed; one that has ended is not, joined or not.
static void *wait_for(void *end) {
    await_flag(end);
    return end;
}
static void running_and_ended(void) {
    pthread_t running, ended[IDLE];
    void *result;
    int end = 0;
    warm_threads(IDLE);
    CHECK_OK(pthread_create(&running, NULL, wait_for, &end));
    for (int i = 0; i < IDLE; i++)
        CHECK_OK(pthread_create(&ended[i], NULL, do_nothing, ended + i));
    expect_listed(by_opendir, 2);
    for (int i = 0; i < IDLE; i++) {
        CHECK_OK(pthread_join(ended[i], &result));
        CHECK(result == &ended[i], "thread %d ended with %p", i, result);
    }
    set_flag(&end);
    CHECK_OK(pthread_join(running, &result));
    CHECK(result == &end, "the thread that ran ended with %p", result);
    expect_listed(by_opendir, 1);
}

// A list that is opened once and read again and again, while detached threads end.
static void *end_soon(void *arg) {
    sleep_ms(20);
    return arg;
}
static void read_again(void) {
    pthread_t thread;
    int count;
    warm_threads(IDLE);
    for (int i = 0; i < IDLE; i++) {
        CHECK_OK(pthread_create(&thread, NULL, end_soon, NULL));
        CHECK_OK(pthread_detach(thread));
    }
    DIR *folder = opendir("/proc/self/task");
    for (int64_t end = now_ms() + patience(); (count = count_entries(folder)) != 1 && now_ms() < end;) {
        sleep_ms(1);
        rewinddir(folder);
    }
    CHECK_EQ(count, 1);
    CHECK_SYS(closedir(folder));
}

// Other folders, and other processes' tasks, are none of the cache's business.
static void other_folders(void) {
    char path[64];
    warm_threads(IDLE);
    pid_t first = run_thread(do_nothing, NULL);
    snprintf(path, sizeof path, "/proc/%d/task", (int)getppid());
    const char *const paths[] = {"/", "/proc", "/proc/self", "/proc/self/fd", "/proc/1/task", path};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        DIR *folder = opendir(paths[i]);
        if (folder == NULL)
            continue;
        rewinddir(folder);
        CHECK_SYS(closedir(folder));
    }
    CHECK(opendir("/proc/self/task/none") == NULL && errno == ENOENT, "opened a folder that is not there");
    CHECK(fdopendir(-1) == NULL && errno == EBADF, "opened no descriptor");
    expect_reused(first, run_thread(do_nothing, NULL));
    CHECK(!under_thrum() || counters()->culled == 0, "%d idle threads were ended", (int)counters()->culled);
}

static const struct check_case cases[] = {
    {"list_by_opendir", list_by_opendir, FAILS_WHEN_SKIPPED},
    {"list_by_number", list_by_number, FAILS_WHEN_SKIPPED},
    {"list_by_descriptor", list_by_descriptor, FAILS_WHEN_SKIPPED},
    {"list_by_scandir", list_by_scandir, FAILS_WHEN_SKIPPED},
    {"list_by_scandirat", list_by_scandirat, FAILS_WHEN_SKIPPED},
    {"list_by_getdents", list_by_getdents, FAILS_WHEN_SKIPPED},
    {"list_by_syscall", list_by_syscall, FAILS_WHEN_SKIPPED},
    {"list_by_relative_path", list_by_relative_path, FAILS_WHEN_SKIPPED},
    {"running_and_ended", running_and_ended, FAILS_WHEN_SKIPPED},
    {"read_again", read_again, FAILS_WHEN_SKIPPED},
    {"other_folders", other_folders, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
