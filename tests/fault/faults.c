// SPDX-License-Identifier: Apache-2.0
//
// The programs that faults happen to. Each checks what it can by itself, and prints what run-fault.sh compares between a
// run without thrum and one under it:
//
//   same: TEXT          the same in both
//   more: NAME NUMBER   under thrum as many, or more
//
//   faults create   threads one by one, in waves, detached; forks: what fails, fails with EAGAIN
//   faults signals  joins and creations in a storm of signals
//   faults stop     the same in a process that is stopped and continued all the time
//   faults memory   deep stacks, then as much memory in one piece, in a control group with a memory limit
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject.h"

#define CHECK(condition, ...)                                                                                \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: not so: %s: ", __FILE__, __LINE__, #condition);                          \
            fprintf(stderr, __VA_ARGS__);                                                                    \
            fputc('\n', stderr);                                                                             \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)

static void inject(int what) {
    getpriority((__priority_which_t)what, 0);
}

static void sleep_us(long us) {
    struct timespec left = {us / 1000000, us % 1000000 * 1000};
    while (nanosleep(&left, &left) == -1 && errno == EINTR) {
    }
}

// ---- create -----------------------------------------------------------------------------------------------------------

static int ran;
static void *count_run(void *arg) {
    __atomic_fetch_add(&ran, 1, __ATOMIC_RELEASE);
    return arg;
}

struct tally {
    int asked, made;
};

// Asks for a thread; where there is one, its pthread_t is in *thread.
static int ask(struct tally *tally, pthread_t *thread, const pthread_attr_t *attr, void *arg) {
    int error = pthread_create(thread, attr, count_run, arg);
    CHECK(error == 0 || error == EAGAIN, "pthread_create: %s", strerror(error));
    tally->asked++;
    tally->made += !error;
    return error;
}

static void wait_for_runs(int expected) {
    for (int i = 0; i < 20000 && __atomic_load_n(&ran, __ATOMIC_ACQUIRE) < expected; i++)
        sleep_us(500);
    CHECK(ran == expected, "%d threads were made, %d ran", expected, ran);
}

static void one_by_one(struct tally *tally) {
    for (intptr_t i = 1; i <= 100; i++) {
        pthread_t thread;
        void *result;
        if (ask(tally, &thread, NULL, (void *)i))
            continue;
        CHECK(pthread_join(thread, &result) == 0 && result == (void *)i, "join, or its result");
    }
}

static void in_waves(struct tally *tally) {
    enum { WAVE = 8 };
    for (int round = 0; round < 15; round++) {
        pthread_t threads[WAVE];
        int made[WAVE];
        for (int i = 0; i < WAVE; i++)
            made[i] = !ask(tally, &threads[i], NULL, &threads[i]);
        for (int i = 0; i < WAVE; i++)
            CHECK(!made[i] || pthread_join(threads[i], NULL) == 0, "join");
    }
}

// How many of these go through at once depends on how soon the ones before have ended, which cannot be waited for. So
// a failing creation is given some time: what then still fails, fails for good.
static void detached(struct tally *tally) {
    enum { THREADS = 24, TRIES = 200 };
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < THREADS; i++) {
        struct tally tries = {0, 0};
        pthread_t thread;
        for (int try = 0; try < TRIES && ask(&tries, &thread, &attr, NULL) != 0; try++)
            sleep_us(500);
        tally->asked++;
        tally->made += tries.made;
    }
}

// Other stack sizes: mostly no idle thread fits.
static void other_sizes(struct tally *tally) {
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    for (int i = 0; i < 60; i++) {
        pthread_t thread;
        pthread_attr_setstacksize(&attr, (size_t)(128 + 64 * (i % 5)) * 1024);
        if (ask(tally, &thread, &attr, NULL) == 0)
            CHECK(pthread_join(thread, NULL) == 0, "join");
    }
}

static int forks(void) {
    int made = 0;
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(5);
        if (pid == -1) {
            CHECK(errno == EAGAIN || errno == ENOMEM, "fork: %s", strerror(errno));
            continue;
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 5, "the child");
        made++;
    }
    return made;
}

static int create(void) {
    static void (*const parts[])(struct tally *) = {one_by_one, in_waves, detached, other_sizes};
    static const char *const names[] = {"one-by-one", "in-waves", "detached", "other-sizes"};
    struct tally before = {0, 0};
    in_waves(&before); // with nothing failing: under the cache there are idle threads now
    CHECK(before.made == before.asked, "creations fail without a fault");
    int made = before.made;
    for (int i = 0; i < 4; i++) {
        struct tally tally = {0, 0};
        inject(INJECT_ON);
        parts[i](&tally);
        inject(INJECT_OFF);
        made += tally.made;
        wait_for_runs(made);
        printf("same: asked for %d threads %s\n", tally.asked, names[i]);
        printf("more: %s %d\n", names[i], tally.made);
    }
    inject(INJECT_ON);
    int forked = forks();
    inject(INJECT_OFF);
    printf("more: forks %d\n", forked);

    // When nothing fails any more, all is as before.
    struct tally tally = {0, 0};
    one_by_one(&tally);
    in_waves(&tally);
    wait_for_runs(made + tally.made);
    printf("same: afterwards %d of %d threads\n", tally.made, tally.asked);
    return 0;
}

// ---- signals ----------------------------------------------------------------------------------------------------------

static volatile int alarms;
static void on_alarm(int sig) {
    (void)sig;
    alarms++;
}

static void *brief(void *arg) {
    for (volatile int i = 0; i < ((int)(intptr_t)arg % 7) * 3000; i++) {
    }
    return arg;
}

// Creations and joins of every kind for a while; none of them may fail or be cut short.
static int churn(int milliseconds) {
    struct timespec now, end;
    int count = 0;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += milliseconds / 1000;
    do {
        enum { WAVE = 4 };
        pthread_t threads[WAVE];
        for (intptr_t i = 0; i < WAVE; i++) {
            int error = pthread_create(&threads[i], NULL, brief, (void *)(count + i));
            CHECK(error == 0, "pthread_create: %s", strerror(error));
        }
        for (intptr_t i = 0; i < WAVE; i++) {
            void *result = NULL;
            struct timespec later;
            clock_gettime(CLOCK_REALTIME, &later);
            later.tv_sec += 20;
            int error =
                i % 2 ? pthread_join(threads[i], &result) : pthread_timedjoin_np(threads[i], &result, &later);
            CHECK(error == 0, "join: %s", strerror(error));
            CHECK(result == (void *)(count + i), "the result of another thread");
        }
        count += WAVE;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
    return count;
}

static void *churn_start(void *milliseconds) {
    churn((int)(intptr_t)milliseconds);
    return NULL;
}

static int under_signals(void) {
    const struct itimerval often = {{0, 150}, {0, 150}};
    struct sigaction action = {.sa_handler = on_alarm}; // no SA_RESTART: waits are interrupted
    pthread_t other;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    inject(INJECT_ON);
    CHECK(pthread_create(&other, NULL, churn_start, (void *)2000) == 0, "pthread_create");
    int count = churn(2000);
    CHECK(pthread_join(other, NULL) == 0, "join");
    inject(INJECT_OFF);
    printf("same: all threads came and went in spite of signals: %s\n",
           count > 0 && alarms > 0 ? "yes" : "no");
    return 0;
}

// ---- stop -------------------------------------------------------------------------------------------------------------

static int stopped(void) {
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t other;
        CHECK(pthread_create(&other, NULL, churn_start, (void *)2000) == 0, "pthread_create");
        churn(2000);
        CHECK(pthread_join(other, NULL) == 0, "join");
        _exit(6);
    }
    int status = 0, stops = 0;
    for (unsigned seed = 1;; stops++) {
        sleep_us(200 + rand_r(&seed) % 5000);
        kill(pid, SIGSTOP);
        sleep_us(rand_r(&seed) % 2000);
        kill(pid, SIGCONT);
        if (waitpid(pid, &status, WNOHANG) == pid)
            break;
        CHECK(stops < 20000, "the process does not get on");
    }
    printf("same: stopped and continued: %s, exit code %d\n", stops > 50 ? "often" : "hardly ever",
           WEXITSTATUS(status));
    return 0;
}

// ---- memory -----------------------------------------------------------------------------------------------------------

enum { MIB = 1024 * 1024, DEEP_THREADS = 12, DEEP = 4 * MIB, LIMIT_MIB = 64, BLOCK_MIB = 44 };

static pthread_barrier_t barrier;

static void *dive(void *arg) {
    volatile char stack[DEEP];
    for (size_t i = 0; i < sizeof stack; i += 4096)
        stack[i] = 1;
    pthread_barrier_wait(&barrier);
    return arg;
}

static char group[128];

static int group_write(const char *file, long value) {
    char path[192];
    snprintf(path, sizeof path, "%s/%s", group, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd == -1)
        return 0;
    int ok = dprintf(fd, "%ld", value) > 0;
    close(fd);
    return ok;
}

// Version 1's own hierarchy, or version 2's.
static int make_group(void) {
    static const char *const roots[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    for (int i = 0; i < 3; i++) {
        snprintf(group, sizeof group, "%s/thrum-fault-%d", roots[i], (int)getpid());
        if (mkdir(group, 0755) == -1)
            continue;
        if (group_write("memory.limit_in_bytes", (long)LIMIT_MIB * MIB) ||
            group_write("memory.max", (long)LIMIT_MIB * MIB)) {
            group_write("memory.swappiness", 0);
            group_write("memory.swap.max", 0);
            return 1;
        }
        rmdir(group);
    }
    return 0;
}

static void in_the_group(void) {
    CHECK(group_write("cgroup.procs", 0), "cannot enter %s: %s", group, strerror(errno));
    for (int round = 0; round < 3; round++) {
        pthread_t threads[DEEP_THREADS];
        pthread_barrier_init(&barrier, NULL, DEEP_THREADS);
        for (int i = 0; i < DEEP_THREADS; i++)
            CHECK(pthread_create(&threads[i], NULL, dive, NULL) == 0, "pthread_create");
        for (int i = 0; i < DEEP_THREADS; i++)
            CHECK(pthread_join(threads[i], NULL) == 0, "join");
        char *block = malloc((size_t)BLOCK_MIB * MIB);
        CHECK(block, "malloc: %s", strerror(errno));
        for (size_t i = 0; i < (size_t)BLOCK_MIB * MIB; i += 4096)
            *(volatile char *)(block + i) = 1;
        free(block);
    }
    _exit(7);
}

static int memory(void) {
    if (!make_group()) {
        fprintf(stderr, "faults: no control group with a memory limit can be made\n");
        return INJECT_CANNOT;
    }
    pid_t pid = fork();
    if (pid == 0)
        in_the_group();
    int status = 0;
    waitpid(pid, &status, 0);
    for (int i = 0; i < 200 && rmdir(group) == -1; i++)
        sleep_us(10000);
    if (WIFSIGNALED(status))
        printf("same: ended by signal %d\n", WTERMSIG(status));
    if (WIFEXITED(status))
        printf("same: exit code %d\n", WEXITSTATUS(status));
    return 0;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*run)(void);
    } programs[] = {{"create", create}, {"signals", under_signals}, {"stop", stopped}, {"memory", memory}};
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < 4; i++)
        if (argc == 2 && strcmp(argv[1], programs[i].name) == 0)
            return programs[i].run();
    fprintf(stderr, "usage: faults create|signals|stop|memory\n");
    return 2;
}
