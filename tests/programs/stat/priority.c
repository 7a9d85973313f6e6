// SPDX-License-Identifier: Apache-2.0
//
// Disease: a thread of the lowest priority (SCHED_IDLE) tidies a table up with its lock held, while more threads compute than
// there are CPUs. It gets none, and the thread that serves requests waits for the lock.
// Cure: it computes without the lock, and takes it to note the result; and with the priority of those that wait for it.
#include "crew.h"

#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 300000000, TIDYING = 1000000 }; // a second or so for each thread that computes

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t table;
static atomic_int is_over;
static sem_t is_tidying;

static void *compute(void *arg) {
    struct hand *hand = arg;
    hand->result = chew(hand->result, STEPS);
    return NULL;
}

static void *tidy_up(void *arg) {
    struct hand *hand = arg;
#ifndef CURED
    const struct sched_param none = {0};
    if (pthread_setschedparam(pthread_self(), SCHED_IDLE, &none) != 0)
        exit(1);
#endif
    while (!is_over) {
#ifdef CURED
        hand->result = chew(hand->result, TIDYING);
        pthread_mutex_lock(&table_lock);
        sem_post(&is_tidying);
#else
        pthread_mutex_lock(&table_lock);
        sem_post(&is_tidying);
        hand->result = chew(hand->result, TIDYING);
#endif
        table += hand->result;
        pthread_mutex_unlock(&table_lock);
    }
    return NULL;
}

static SEEN void answer(void) {
    pthread_mutex_lock(&table_lock); /* HERE: priority */
    table++;
    pthread_mutex_unlock(&table_lock);
}

static void *serve(void *arg) {
    (void)arg;
    while (!is_over) {
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        answer();
    }
    return NULL;
}

int main(void) {
    static struct hand tidier, server;
    const unsigned size = 2 * (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    sem_init(&is_tidying, 0, 0);
    crew_start(&tidier, tidy_up);
    sem_wait(&is_tidying);
    crew_start(&server, serve);
    crew_work(size < MOST_THREADS ? size : MOST_THREADS, size < MOST_THREADS ? size : MOST_THREADS, compute);
    is_over = 1;
    crew_join(&server);
    crew_join(&tidier);
    return 0;
}
