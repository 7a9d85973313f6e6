// SPDX-License-Identifier: Apache-2.0
//
// No disease: a pool of threads that wait for work, which comes now and then, as in a server that has little to do.
// They wait nearly all the time, for a condition variable, and no place is to blame.
#include <time.h>

#include "crew.h"

enum { JOBS = 400, STEPS = 20000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t there_is_work = PTHREAD_COND_INITIALIZER;
static int queued, closed;

static void *serve(void *arg) {
    struct hand *hand = arg;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (queued == 0 && !closed)
            pthread_cond_wait(&there_is_work, &lock);
        if (queued == 0)
            break;
        queued--;
        pthread_mutex_unlock(&lock);
        hand->result = chew(hand->result, STEPS);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *bring_work(void *arg) {
    const struct timespec pause = {0, 1000000};
    (void)arg;
    for (int i = 0; i <= JOBS; i++) {
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&lock);
        if (i < JOBS)
            queued++;
        else
            closed = 1;
        pthread_mutex_unlock(&lock);
        if (i < JOBS)
            pthread_cond_signal(&there_is_work);
        else
            pthread_cond_broadcast(&there_is_work);
    }
    return NULL;
}

int main(int argc, char **argv) {
    crew_serve(crew_size(argc, argv), bring_work, serve);
    return 0;
}
