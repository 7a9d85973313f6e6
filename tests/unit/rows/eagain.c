// SPDX-License-Identifier: Apache-2.0
//
// Row eagain: idle threads never take from a program what it would have had without them. Where a limit on threads,
// on processes or on address space is reached, they end: exactly as many threads, processes and bytes are available.
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "child.h"

enum { SECONDS = 12, LIMIT = 16, IDLE = 10, MIB = 1024 * 1024 };

static void set_limit(int resource, rlim_t value) {
    const struct rlimit limit = {value, value};
    CHECK_SYS(setrlimit(resource, &limit));
}

// Where the process counts alone against RLIMIT_NPROC: a user without other processes, not even another case of this
// test that runs at the same time, or a user namespace of its own (in which the kernel counts from the start, since
// Linux 5.14).
static void count_alone(void) {
    const uid_t unused = 4712300 + (uid_t)getpid();
    if (geteuid() == 0) {
        CHECK_SYS(setresgid(unused, unused, unused));
        CHECK_SYS(setresuid(unused, unused, unused));
    } else if (unshare(CLONE_NEWUSER) == -1) {
        CANNOT("neither root nor a user namespace: %s", strerror(errno));
    }
    set_limit(RLIMIT_NPROC, LIMIT);
}

// Threads that joining has returned for may stay in the kernel's count for a moment, without thrum too.
static void let_the_kernel_settle(void) {
    sleep_ms(50);
}

// ---- ways to use up what is left ------------------------------------------------------------------------------------

static int end;
static void *hold(void *arg) {
    await_flag(&end);
    return arg;
}

// Creates as many threads as there can be; how many there were. With a stack of the caller's, they are of another kind
// than those that are idle.
static int most_threads(int user_stacks, int most) {
    enum { STACK = 64 * 1024 };
    static char stacks[LIMIT + 8][STACK] __attribute__((aligned(4096)));
    pthread_t threads[LIMIT + 8];
    int count = 0, error = 0;
    __atomic_store_n(&end, 0, __ATOMIC_RELEASE);
    while (count < most && count < LIMIT + 8) {
        pthread_attr_t attr;
        CHECK_OK(pthread_attr_init(&attr));
        if (user_stacks)
            CHECK_OK(pthread_attr_setstack(&attr, stacks[count], STACK));
        error = pthread_create(&threads[count], &attr, hold, NULL);
        CHECK_OK(pthread_attr_destroy(&attr));
        if (error)
            break;
        count++;
    }
    if (count < most)
        CHECK_EQ(error, EAGAIN);
    set_flag(&end);
    for (int i = 0; i < count; i++)
        CHECK_OK(pthread_join(threads[i], NULL));
    return count;
}

static int most_processes(pid_t (*make)(void), int most) {
    pid_t pids[LIMIT + 8];
    int count = 0;
    while (count < most && count < LIMIT + 8) {
        pids[count] = make();
        if (pids[count] == -1) {
            CHECK_EQ(errno, EAGAIN);
            break;
        }
        count++;
    }
    for (int i = 0; i < count; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    return count;
}

static pid_t by_fork(void) {
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    return pid;
}
static pid_t by_vfork(void) {
    pid_t pid = vfork();
    if (pid == 0) {
        execl("/bin/sleep", "sleep", "20", (char *)NULL);
        _exit(9);
    }
    return pid;
}
static pid_t by_spawn(void) {
    static char *const argv[] = {"sleep", "20", NULL};
    pid_t pid;
    int error = posix_spawn(&pid, "/bin/sleep", NULL, NULL, argv, environ);
    errno = error;
    return error ? -1 : pid;
}

// ---- RLIMIT_NPROC -------------------------------------------------------------------------------------------------

static void nproc_threads_part(void) {
    count_alone();
    warm_threads(IDLE);
    let_the_kernel_settle();
    CHECK_EQ(most_threads(0, LIMIT), LIMIT - 1);
    let_the_kernel_settle();
    CHECK_EQ(most_threads(1, LIMIT), LIMIT - 1); // all idle ones have to go
    let_the_kernel_settle();
    CHECK_EQ(most_threads(0, LIMIT), LIMIT - 1);
}
static void nproc_fork_part(void) {
    count_alone();
    for (int i = 0; i < 2; i++) {
        warm_threads(IDLE);
        let_the_kernel_settle();
        CHECK_EQ(most_processes(by_fork, LIMIT), LIMIT - 1);
        let_the_kernel_settle();
    }
}
static void nproc_vfork_part(void) {
    count_alone();
    warm_threads(IDLE);
    let_the_kernel_settle();
    CHECK_EQ(most_processes(by_vfork, LIMIT), LIMIT - 1);
}
static void nproc_spawn_part(void) {
    count_alone();
    warm_threads(IDLE);
    let_the_kernel_settle();
    CHECK_EQ(most_processes(by_spawn, LIMIT), LIMIT - 1);
}
static void nproc_system_part(void) {
    count_alone();
    warm_threads(LIMIT - 1);
    let_the_kernel_settle();
    CHECK_EQ(system("exit 3") >> 8, 3);
    warm_threads(LIMIT - 1);
    let_the_kernel_settle();
    FILE *pipe = popen("echo hello", "r");
    char line[16] = "";
    CHECK(pipe && fgets(line, sizeof line, pipe), "popen: %s", strerror(errno));
    CHECK(strcmp(line, "hello\n") == 0, "popen gave '%s'", line);
    CHECK_EQ(pclose(pipe), 0);
}
// The same by a thread that was reused, and that counts as well.
static void *use_system(void *arg) {
    errno = ENOTTY;
    int status = system("exit 3");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3, "system: status %#x", (unsigned)status);
    CHECK_EQ(errno, ENOTTY);
    return arg;
}
static void *use_popen(void *arg) {
    FILE *pipe = popen("cat >/dev/null; exit 4", "w");
    CHECK(pipe != NULL, "popen: %s", strerror(errno));
    CHECK_EQ(pclose(pipe) >> 8, 4);
    return arg;
}
static void *use_spawn(void *arg) {
    pid_t pid = by_spawn();
    CHECK_SYS(pid);
    CHECK_SYS(kill(pid, SIGTERM));
    expect_killed(wait_child(pid), SIGTERM);
    return arg;
}
static void *ask_for_shell(void *arg) {
    CHECK(system(NULL) != 0, "system says that there is no shell");
    return arg;
}
static void in_a_reused_thread(void *(*start)(void *)) {
    const volatile struct thrum_cache_counters *c = counters();
    warm_threads(LIMIT - 1);
    let_the_kernel_settle();
    uint64_t reused = c ? c->reused : 0;
    run_thread(start, NULL);
    PREMISE(!c || c->reused == reused + 1, "not in a reused thread");
    let_the_kernel_settle();
}
static void nproc_reused_thread_part(void) {
    count_alone();
    in_a_reused_thread(use_system);
    in_a_reused_thread(use_popen);
    in_a_reused_thread(use_spawn);
}
static void nproc_shell_part(void) {
    count_alone();
    in_a_reused_thread(ask_for_shell);
}
static void nproc_threads(void) {
    expect_exit(child_status(nproc_threads_part, SECONDS), 0);
}
static void nproc_fork(void) {
    expect_exit(child_status(nproc_fork_part, SECONDS), 0);
}
static void nproc_vfork(void) {
    expect_exit(child_status(nproc_vfork_part, SECONDS), 0);
}
static void nproc_spawn(void) {
    expect_exit(child_status(nproc_spawn_part, SECONDS), 0);
}
static void nproc_system(void) {
    expect_exit(child_status(nproc_system_part, SECONDS), 0);
}
static void nproc_reused_thread(void) {
    expect_exit(child_status(nproc_reused_thread_part, SECONDS), 0);
}
static void nproc_shell(void) {
    expect_exit(child_status(nproc_shell_part, SECONDS), 0);
}

// ---- pids.max of a control group -----------------------------------------------------------------------------------

static char group[128];

static int write_to(const char *file, const char *text) {
    char path[192];
    snprintf(path, sizeof path, "%s/%s", group, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd == -1)
        return -1;
    ssize_t written = write(fd, text, strlen(text));
    close(fd);
    return written == (ssize_t)strlen(text) ? 0 : -1;
}

// Version 1's own hierarchy, or version 2's.
static void make_group(void) {
    const char *const roots[] = {"/sys/fs/cgroup/pids", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    for (unsigned i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        char limit[16];
        snprintf(group, sizeof group, "%s/thrum-row-%d", roots[i], (int)getpid());
        if (mkdir(group, 0755) == -1)
            continue;
        snprintf(limit, sizeof limit, "%d", LIMIT);
        if (write_to("pids.max", limit) == 0)
            return;
        rmdir(group);
    }
    CANNOT("no control group with pids.max can be made");
}

static void pids_part(void) {
    CHECK(write_to("cgroup.procs", "0") == 0, "cannot enter %s: %s", group, strerror(errno));
    for (int i = 0; i < 2; i++) {
        warm_threads(IDLE);
        let_the_kernel_settle();
        CHECK_EQ(most_threads(1, LIMIT), LIMIT - 1);
        let_the_kernel_settle();
        CHECK_EQ(most_threads(0, LIMIT), LIMIT - 1);
        let_the_kernel_settle();
        CHECK_EQ(most_processes(by_fork, LIMIT), LIMIT - 1);
        let_the_kernel_settle();
    }
}
static void pids_max(void) {
    make_group();
    pid_t pid = fork(); // checks that fail there must not leave the group behind
    CHECK_SYS(pid);
    if (pid == 0) {
        alarm(SECONDS);
        pids_part();
        _exit(0);
    }
    int status = 0;
    CHECK_SYS(waitpid(pid, &status, 0)); // main is in there and takes the alarm
    for (int i = 0; i < 200 && rmdir(group) == -1; i++)
        sleep_ms(10);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "wait status %x", (unsigned)status);
}

// ---- RLIMIT_AS ----------------------------------------------------------------------------------------------------

// Idle threads hold stacks of 8 MiB each. What glibc itself would keep of them (40 MiB) is left free here.
enum { SPACE = 512, STACKS = 40, KEPT_BY_GLIBC = 48 };

static int space_used(void) {
    long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    CHECK(statm && fscanf(statm, "%ld", &pages) == 1, "/proc/self/statm");
    fclose(statm);
    return (int)(pages * sysconf(_SC_PAGESIZE) / MIB);
}

// Idle threads' malloc arenas (64 MiB of address space each) would hide what this is about.
static void limit_space(void) {
    check_with_env("MALLOC_ARENA_MAX", "1");
    set_limit(RLIMIT_AS, (rlim_t)(space_used() + SPACE) * MIB);
}

static void space_for_mmap(void) {
    limit_space();
    for (int i = 0; i < 3; i++) {
        size_t size = (size_t)(SPACE - KEPT_BY_GLIBC - 16) * MIB;
        run_together(STACKS);
        void *p =
            mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        CHECK(p != MAP_FAILED, "mmap with %d MiB in use: %s", space_used(), strerror(errno));
        CHECK_SYS(munmap(p, size));
    }
}

static void space_for_malloc(void) {
    limit_space();
    for (int i = 0; i < 3; i++) {
        run_together(STACKS);
        void *volatile p = malloc((size_t)(SPACE - KEPT_BY_GLIBC - 16) * MIB);
        CHECK(p != NULL, "malloc with %d MiB in use: %s", space_used(), strerror(errno));
        free(p);
    }
}

// Stacks of another size: idle ones of the default size make place.
static void space_for_stacks(void) {
    limit_space();
    for (int i = 0; i < 3; i++) {
        pthread_attr_t attr;
        pthread_t threads[5];
        run_together(STACKS);
        CHECK_OK(pthread_attr_init(&attr));
        CHECK_OK(pthread_attr_setstacksize(&attr, 80 * MIB));
        __atomic_store_n(&end, 0, __ATOMIC_RELEASE);
        for (int t = 0; t < 5; t++)
            CHECK_OK(pthread_create(&threads[t], &attr, hold, NULL));
        set_flag(&end);
        for (int t = 0; t < 5; t++)
            CHECK_OK(pthread_join(threads[t], NULL));
        let_the_kernel_settle();
    }
}

static const struct check_case cases[] = {
    {"nproc_threads", nproc_threads, FAILS_WHEN_SKIPPED},
    {"nproc_fork", nproc_fork, FAILS_WHEN_SKIPPED},
    {"nproc_vfork", nproc_vfork, FAILS_WHEN_SKIPPED},
    {"nproc_spawn", nproc_spawn, FAILS_WHEN_SKIPPED},
    {"nproc_system", nproc_system, FAILS_WHEN_SKIPPED},
    {"nproc_reused_thread", nproc_reused_thread, FAILS_WHEN_SKIPPED},
    {"nproc_shell", nproc_shell, FAILS_WHEN_SKIPPED},
    {"pids_max", pids_max, FAILS_WHEN_SKIPPED},
    {"space_for_mmap", space_for_mmap, FAILS_WHEN_SKIPPED},
    {"space_for_malloc", space_for_malloc, FAILS_WHEN_SKIPPED},
    {"space_for_stacks", space_for_stacks, FAILS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
