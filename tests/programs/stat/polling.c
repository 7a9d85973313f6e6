// SPDX-License-Identifier: Apache-2.0
//
// Disease: the workers of a pool sleep for two milliseconds if its queue is empty, and look again; so does the source until
// all tasks of a round are done. With more workers one of them looks a little earlier, which is all that they gain.
// Cure: condition variables.
#include <stdatomic.h>
#include <unistd.h>

#include "crew.h"

enum { ROUNDS = 600, TASKS = 16, STEPS = 20000, NAP = 2000 };

static atomic_int queued, done, closed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER, none = PTHREAD_COND_INITIALIZER;

static int take(void) {
    for (int left = queued; left > 0;)
        if (atomic_compare_exchange_weak(&queued, &left, left - 1))
            return 1;
    return 0;
}

static SEEN void wait_for_work(void) {
#ifdef CURED
    pthread_mutex_lock(&lock);
    while (queued == 0 && !closed)
        pthread_cond_wait(&some, &lock);
    pthread_mutex_unlock(&lock);
#else
    usleep(NAP); /* HERE: polling */
#endif
}

static SEEN void wait_for_results(int expected) {
#ifdef CURED
    pthread_mutex_lock(&lock);
    while (done < expected)
        pthread_cond_wait(&none, &lock);
    pthread_mutex_unlock(&lock);
#else
    while (done < expected)
        usleep(NAP);
#endif
}

static void *serve(void *arg) {
    struct hand *hand = arg;
    while (!closed) {
        if (!take()) {
            wait_for_work();
            continue;
        }
        hand->result = chew(hand->result, STEPS);
        if (atomic_fetch_add(&done, 1) % TASKS == TASKS - 1) {
            pthread_mutex_lock(&lock);
            pthread_cond_signal(&none);
            pthread_mutex_unlock(&lock);
        }
    }
    return NULL;
}

static void *bring_work(void *arg) {
    for (int round = 1; round <= ROUNDS; round++) {
        pthread_mutex_lock(&lock);
        queued = TASKS;
        pthread_cond_broadcast(&some);
        pthread_mutex_unlock(&lock);
        wait_for_results(round * TASKS);
    }
    pthread_mutex_lock(&lock);
    closed = 1;
    pthread_cond_broadcast(&some);
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(int argc, char **argv) {
    crew_serve(crew_size(argc, argv), bring_work, serve);
    return 0;
}
