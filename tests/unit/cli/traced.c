// SPDX-License-Identifier: Apache-2.0
//
// A program of libthrum's that `thrum trace` is tried on. What it does, and prints how often it did:
//
//   traced fini|exit|leave|kill|fork|twice|outside|preempt|stay
//
//   fini     all that a trace shows; the runtime stopped by thrum_fini
//   exit     the same, ended by exit(3) while a thread waits
//   leave    ended by _exit
//   kill     ended by a signal
//   fork     a child has a runtime of its own, with one thread
//   twice    one runtime after another
//   outside  no thrum_init
//   preempt  fini, and threads that compute until some were preempted
//   stay     the same as kill, but it stays until another process ends it, while a thread sleeps and wakes
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <thrum/sync.h>
#include <thrum/thrum.h>
#include <thrum/worker.h>
#include <unistd.h>

enum { YIELDING = 50, YIELDS = 3, QUEUED = 20, TASKLETS = 5 };

static int threads = 1, tasklets; // with what called thrum_init

static void check(int error) {
    if (error != 0) {
        fprintf(stderr, "traced: %s\n", strerror(error));
        exit(1);
    }
}

static thrum_t make(unsigned flags, void *(*fn)(void *), void *arg) {
    thrum_attr_t attr;
    thrum_t thread;
    thrum_attr_init(&attr);
    check(thrum_attr_set_flags(&attr, flags));
    check(thrum_spawn(&thread, &attr, fn, arg));
    __atomic_add_fetch(flags & THRUM_SPAWN_TASKLET ? &tasklets : &threads, 1, __ATOMIC_RELAXED);
    return thread;
}

static void *yields(void *arg) {
    for (int i = 0; i < YIELDS; i++)
        thrum_yield();
    return arg;
}

static void *runs_to_its_end(void *arg) {
    return arg;
}

static void *makes_many(void *arg) {
    thrum_t made[YIELDING];
    for (int i = 0; i < YIELDING; i++)
        made[i] = make(0, yields, NULL);
    for (int i = 0; i < YIELDING; i++)
        check(thrum_join(made[i], NULL));
    return arg;
}

static void *has_a_name(void *arg) {
    check(thrum_set_name(thrum_self(), "fifteen-letters"));
    check(thrum_join(make(0, yields, NULL), NULL));
    struct thrum_worker_counters counters = {.parks = 0};
    while (counters.parks == 0) { // the first worker parks
        thrum_sleep(3 * THRUM_MS);
        check(thrum_worker_get_counters(0, &counters));
    }
    return arg;
}

static void *ends_within(void *arg) {
    thrum_yield();
    thrum_exit(arg);
}

static void *migrates(void *arg) {
    check(thrum_migrate(thrum_self(), thrum_workers() - 1));
    check(thrum_migrate(thrum_self(), 0));
    return arg;
}

static void *computes_until(void *flag) {
    while (!__atomic_load_n((int *)flag, __ATOMIC_ACQUIRE)) {
    }
    return flag;
}

// The caller's child keeps the worker until another has taken the caller from its queue.
static void *is_stolen(void *arg) {
    int stolen = 0;
    thrum_t child = make(0, computes_until, &stolen);
    __atomic_store_n(&stolen, 1, __ATOMIC_RELEASE);
    check(thrum_join(child, NULL));
    return arg;
}

static uint64_t preemptions(void) {
    uint64_t sum = 0;
    struct thrum_worker_counters counters;
    for (unsigned i = 0; thrum_worker_get_counters(i, &counters) == 0; i++)
        sum += counters.preemptions;
    return sum;
}

// All of them on one worker: a thread that is alone is not interrupted.
static void *is_preempted(void *until) {
    check(thrum_migrate(thrum_self(), thrum_workers() - 1));
    while (preemptions() < *(uint64_t *)until) {
    }
    return until;
}

static void preempt_some(void) {
    uint64_t until = preemptions() + 10;
    thrum_t computing[3];
    for (int i = 0; i < 3; i++)
        computing[i] = make(THRUM_SPAWN_QUEUED, is_preempted, &until);
    for (int i = 0; i < 3; i++)
        check(thrum_join(computing[i], NULL));
}

static void *spawns_from_outside(void *arg) {
    check(thrum_join(make(0, yields, NULL), NULL));
    __atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void many_at_once(unsigned flags, int count) {
    thrum_t made[QUEUED];
    for (int i = 0; i < count; i++)
        made[i] = make(flags, runs_to_its_end, NULL);
    for (int i = 0; i < count; i++)
        check(thrum_join(made[i], NULL));
}

// More than one runs at a time, so that there is something to steal; and one is spawned on another worker.
static void everything(void) {
    thrum_t makers[2] = {make(0, makes_many, NULL), make(0, makes_many, NULL)};
    check(thrum_join(makers[0], NULL));
    check(thrum_join(makers[1], NULL));
    many_at_once(THRUM_SPAWN_QUEUED, QUEUED);
    many_at_once(THRUM_SPAWN_TASKLET, TASKLETS);
    check(thrum_join(make(0, has_a_name, NULL), NULL));
    check(thrum_join(make(0, ends_within, NULL), NULL));
    check(thrum_join(make(0, migrates, NULL), NULL));
    if (thrum_workers() > 1)
        check(thrum_join(make(THRUM_SPAWN_QUEUED, is_stolen, NULL), NULL));
    pthread_t outside;
    int over = 0;
    check(pthread_create(&outside, NULL, spawns_from_outside, &over));
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) /* it needs a worker, and this may be the only one */
        thrum_sleep(1 * THRUM_MS);
    check(pthread_join(outside, NULL));
}

static void tell(void) {
    printf("threads %d tasklets %d\n", threads, tasklets);
    fflush(stdout);
}

static void *waits_for_ever(void *arg) {
    __atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
    thrum_suspend();
    return arg;
}

static void *sleeps_and_wakes(void *arg) {
    for (;;)
        thrum_sleep(1 * THRUM_MS);
    return arg;
}

static void fork_a_child(void) {
    const pid_t child = fork();
    if (child == 0) {
        check(thrum_init(NULL));
        check(thrum_join(make(0, yields, NULL), NULL));
        check(thrum_fini());
        exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        check(ECHILD);
}

static void runtime(bool preempts) {
    check(thrum_init(NULL));
    everything();
    if (preempts)
        preempt_some();
    check(thrum_fini());
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "outside") == 0) {
        threads = 0;
        everything();
        tell();
        return 0;
    }
    if (strcmp(what, "fini") == 0 || strcmp(what, "twice") == 0 || strcmp(what, "preempt") == 0) {
        runtime(*what == 'p');
        if (*what == 't') {
            threads++;
            runtime(false);
        }
        tell();
        return 0;
    }
    check(thrum_init(NULL));
    everything();
    if (strcmp(what, "fork") == 0)
        fork_a_child();
    if (strcmp(what, "stay") == 0) {
        thrum_t sleeper = make(0, sleeps_and_wakes, NULL);
        tell();
        check(thrum_join(sleeper, NULL));
    }
    int begun = 0;
    if (strcmp(what, "exit") == 0)
        make(0, waits_for_ever, &begun);
    while (strcmp(what, "exit") == 0 && !__atomic_load_n(&begun, __ATOMIC_ACQUIRE))
        thrum_sleep(1 * THRUM_MS);
    tell();
    if (strcmp(what, "leave") == 0)
        _exit(7);
    if (strcmp(what, "kill") == 0)
        raise(SIGKILL);
    exit(strcmp(what, "exit") == 0 ? 5 : 0);
}
