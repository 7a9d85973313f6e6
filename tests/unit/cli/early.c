// SPDX-License-Identifier: Apache-2.0
//
// A library whose constructor makes a thread before libthrum-stat.so starts: that is preloaded, and so comes last. By the
// program's first argument: one that blocks all signals and waits all the time, as helpers of allocators do, or one that
// uses so many milliseconds of CPU time. It has begun when the constructor returns.
#include "early.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static _Atomic unsigned waits;
static sem_t begun, burnt;
static int milliseconds;
static volatile double sink;

static void *wait_again_and_again(void *unused) {
    sem_t never;
    sem_init(&never, 0, 0);
    sem_post(&begun);
    while (unused == NULL) {
        struct timespec soon;
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_nsec += 1000000;
        soon.tv_sec += soon.tv_nsec / 1000000000;
        soon.tv_nsec %= 1000000000;
        sem_timedwait(&never, &soon);
        waits++;
    }
    return unused;
}

static double cpu_of_thread(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void *burn(void *unused) {
    sem_post(&begun);
    while (cpu_of_thread() < milliseconds * 1e-3)
        for (int i = 0; i < 100000; i++)
            sink = sink * 0.5 + i;
    sem_post(&burnt);
    return unused;
}

__attribute__((constructor)) static void begin(int argc, char **argv) {
    sigset_t set, before;
    pthread_t thread;
    const bool burns = argc > 2 && strcmp(argv[1], "burn") == 0;
    if (argc < 2)
        return;
    sem_init(&begun, 0, 0);
    sem_init(&burnt, 0, 0);
    milliseconds = burns ? atoi(argv[2]) : 0;
    sigemptyset(&set);
    if (!burns)
        sigfillset(&set);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    if (pthread_create(&thread, NULL, burns ? burn : wait_again_and_again, NULL) == 0)
        sem_wait(&begun);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

unsigned early_waits(void) {
    return waits;
}

void early_until_burnt(void) {
    sem_wait(&burnt);
}
