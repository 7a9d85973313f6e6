// SPDX-License-Identifier: Apache-2.0
//
// More of what row tests share: a part of a case in a process of its own (what it does may end the process, or must
// be done while it has one thread), and a number of idle threads to begin with. On top of check.h.
#ifndef THRUM_TESTS_ROWS_CHILD_H
#define THRUM_TESTS_ROWS_CHILD_H

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"

// Waits for a child process. Failed checks, missing premises and the like in it are the caller's own.
static inline int wait_child(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) == -1)
        CHECK(errno == EINTR, "waitpid: %s", strerror(errno));
    if (WIFEXITED(status)) {
        int code = WEXITSTATUS(status);
        if (code == CHECK_EXIT_FAILED || code == CHECK_EXIT_CANNOT || code == CHECK_EXIT_PREMISE)
            _exit(code);
    }
    return status;
}

// A hang is what many a skipped row leads to: there no time is lost on waiting for it.
static inline int64_t now_ms(void);
static inline int patience_ms(int seconds) {
    return row_is_skipped() && seconds > 2 ? 2000 : seconds * 1000;
}

// The same, for no longer than so many seconds. (An alarm in the child would not do: where main has ended and the
// other threads block all signals, no thread takes it.)
static inline int wait_child_for(pid_t pid, int seconds) {
    siginfo_t info;
    int64_t end = now_ms() + patience_ms(seconds);
    do {
        info.si_pid = 0;
        CHECK_SYS(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT));
        if (info.si_pid == 0)
            sleep_ms(1);
    } while (info.si_pid == 0 && now_ms() < end);
    if (info.si_pid == 0) {
        kill(pid, SIGKILL);
        CHECK(0, "the process did not end in time");
    }
    return wait_child(pid);
}

// Runs the function in a child process that may take so many seconds; its wait status. The child ends with _exit(0)
// where the function returns.
static inline int child_status(void (*run)(void), int seconds) {
    fflush(NULL);
    pid_t pid = fork();
    CHECK_SYS(pid);
    if (pid == 0) {
        alarm((unsigned)seconds + 5); // in case that its parent fails elsewhere
        run();
        _exit(0);
    }
    return wait_child_for(pid, seconds);
}

// The child ran to its end.
static inline void expect_exit(int status, int code) {
    CHECK(WIFEXITED(status), "the process was killed by signal %d", WTERMSIG(status));
    CHECK_EQ(WEXITSTATUS(status), code);
}

// The child was ended by a signal.
static inline void expect_killed(int status, int sig) {
    CHECK(WIFSIGNALED(status), "the process ended with exit code %d instead of signal %d",
          WEXITSTATUS(status), sig);
    CHECK_EQ(WTERMSIG(status), sig);
}

// Kernel threads of this process, as the kernel counts them: a look at the folder of tasks would end the idle ones (rows
// tasks, task-stat).
static inline int kernel_threads(void) {
    char line[256];
    int count = -1;
    FILE *status = fopen("/proc/self/status", "re");
    CHECK(status != NULL, "/proc/self/status: %s", strerror(errno));
    while (fgets(line, sizeof line, status) && sscanf(line, "Threads: %d", &count) != 1) {
    }
    fclose(status);
    return count;
}

// No more than so many, idle ones included; those that have just ended may be listed for a moment.
static inline void expect_threads_at_most(int most) {
    for (int i = 0; i < 5000 && kernel_threads() > most; i++)
        sleep_ms(1);
    CHECK(kernel_threads() <= most, "%d kernel threads, expected at most %d", kernel_threads(), most);
}

// Joining returns a moment before the kernel has let go of a thread: a call that wants a process of one thread would find it.
// Under the cache it may be idle instead, which is for the cache to see to.
static inline void wait_until_gone(pid_t tid) {
    for (int i = 0; i < 5000 && !under_thrum() && syscall(SYS_tgkill, getpid(), tid, 0) == 0; i++)
        sleep_ms(1);
}

static inline void *meet(void *barrier) {
    pthread_barrier_wait((pthread_barrier_t *)barrier);
    return NULL;
}

// Has `count` threads run at the same time and end.
static inline void run_together(int count) {
    enum { MOST = 64 };
    pthread_t threads[MOST];
    pthread_barrier_t barrier;
    PREMISE(count <= MOST, "too many threads asked for");
    CHECK_OK(pthread_barrier_init(&barrier, NULL, (unsigned)count));
    int64_t busy = busy_threads();
    for (int i = 0; i < count; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, meet, &barrier));
    for (int i = 0; i < count; i++)
        CHECK_OK(pthread_join(threads[i], NULL));
    wait_until_settled(busy);
    CHECK_OK(pthread_barrier_destroy(&barrier));
}

// The same, after which as many are idle under the cache.
static inline void warm_threads(int count) {
    run_together(count);
    const volatile struct thrum_cache_counters *c = counters();
    PREMISE(!c || c->idle >= (uint64_t)count, "%d threads ended, %d are idle (cache: %s)", count,
            (int)c->idle, cache_state());
}

static inline int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Waits until *flag is set by another thread; a failed check after 10 s.
static inline void await_flag(volatile int *flag) {
    for (int i = 0; i < 10000 && !__atomic_load_n(flag, __ATOMIC_ACQUIRE); i++)
        sleep_ms(1);
    CHECK(__atomic_load_n(flag, __ATOMIC_ACQUIRE), "waited 10 s for another thread");
}

static inline void copy_proc_file(const char *task, const char *name) {
    char path[300], text[4096];
    snprintf(path, sizeof path, "/proc/self/task/%s/%s", task, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd == -1 ? -1 : read(fd, text, sizeof text);
    fprintf(stderr, "%s %s: %.*s\n", task, name, size > 0 ? (int)size : 0, text);
    if (fd != -1)
        close(fd);
}

static inline void tell_and_end(int sig) {
    DIR *tasks = opendir("/proc/self/./task");
    for (struct dirent *entry; tasks && (entry = readdir(tasks));)
        if (entry->d_name[0] != '.')
            for (const char *const *name =
                     (const char *const[]){"stat", "schedstat", "wchan", "syscall", "stack", NULL};
                 *name; name++)
                copy_proc_file(entry->d_name, *name);
    signal(sig, SIG_DFL);
    raise(sig);
}

// Where run-row.sh ends the case because it takes too long, it first says what each of its threads is doing. Best effort.
static inline void tell_when_ended(void) {
    struct sigaction action = {.sa_handler = tell_and_end, .sa_flags = SA_NODEFER};
    CHECK_SYS(sigaction(SIGTERM, &action, NULL));
}

static inline void set_flag(volatile int *flag) {
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

#endif
