// SPDX-License-Identifier: Apache-2.0
/* Cancellation by the thousand: threads that wait in one of several cancellation points, or compute with asynchronous
 * cancellation on, are cancelled; in between, threads end by themselves, and some with cancellation disabled outlive
 * the request. Every end must run its cleanup handlers and give the right exit value, and a thread that follows must
 * start with cancellation enabled, deferred and not requested. Run by cancel-storm.sh.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 150, KINDS = 6 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t empty;
static int pipe_ends[2];
static atomic_int started, cleaned, stale;

static void count_cleanup(void *argument) {
    atomic_fetch_add((atomic_int *)argument, 1);
}
static void unlock(void *argument) {
    pthread_mutex_unlock(argument);
}

/* A new thread's cancellation state is the default one and nothing is requested. */
static void check_fresh(void) {
    int state = -1, type = -1;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_setcancelstate(state, NULL);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    if (state != PTHREAD_CANCEL_ENABLE || type != PTHREAD_CANCEL_DEFERRED)
        atomic_fetch_add(&stale, 1);
}

static void wait_on_condition(void) {
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, &mutex);
    for (;;)
        pthread_cond_wait(&never, &mutex);
    pthread_cleanup_pop(1);
}

static void wait_asleep(void) {
    for (;;)
        nanosleep(&(struct timespec){.tv_sec = 100}, NULL);
}

static void wait_reading(void) {
    char byte;
    while (read(pipe_ends[0], &byte, 1) >= 0)
        ;
}

static void wait_computing(void) {
    int old;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    for (volatile unsigned i = 0;; i++)
        ;
}

/* Sees the request, but ends by itself. */
static void outlive(void) {
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

static void *victim(void *argument) {
    static char survived;
    int kind = *(int *)argument;

    check_fresh();
    pthread_cleanup_push(count_cleanup, &cleaned);
    atomic_fetch_add(&started, 1);
    switch (kind) {
    case 0: wait_on_condition(); break;
    case 1: wait_asleep(); break;
    case 2: wait_reading(); break;
    case 3: sem_wait(&empty); break;
    case 4: wait_computing(); break;
    default: outlive(); break;
    }
    pthread_cleanup_pop(1);
    return &survived;
}

static void *bystander(void *argument) {
    check_fresh();
    pthread_testcancel();
    return argument;
}

static void must(int error, const char *what) {
    if (error == 0)
        return;
    fprintf(stderr, "cancel_storm: %s: error %d\n", what, error);
    exit(1);
}

int main(void) {
    pthread_t victims[KINDS], others[KINDS];
    int kinds[KINDS], cancelled = 0, survived = 0, passed_by = 0;

    must(sem_init(&empty, 0, 0), "sem_init");
    must(pipe(pipe_ends), "pipe");
    for (int round = 0; round < ROUNDS; round++) {
        atomic_store(&started, 0);
        for (int i = 0; i < KINDS; i++) {
            kinds[i] = i;
            must(pthread_create(&victims[i], NULL, victim, &kinds[i]), "pthread_create");
            must(pthread_create(&others[i], NULL, bystander, &kinds[i]), "pthread_create");
        }
        while (round % 2 == 0 && atomic_load(&started) < KINDS)
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        for (int i = 0; i < KINDS; i++)
            must(pthread_cancel(victims[i]), "pthread_cancel");
        for (int i = 0; i < KINDS; i++) {
            void *result;
            must(pthread_join(victims[i], &result), "pthread_join");
            if (result == PTHREAD_CANCELED)
                cancelled += i != KINDS - 1;
            else
                survived += i == KINDS - 1;
            must(pthread_join(others[i], &result), "pthread_join");
            passed_by += result == &kinds[i];
        }
    }
    /* A victim cancelled before it started is cancelled in its first cancellation point, inside the cleanup handler;
     * the outliving kind has none before it disables cancellation. */
    printf("cancelled %d, survived %d, cleaned up %d, bystanders %d, stale %d\n", cancelled, survived,
           atomic_load(&cleaned), passed_by, atomic_load(&stale));
    return atomic_load(&stale) != 0;
}
