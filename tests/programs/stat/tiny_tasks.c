// SPDX-License-Identifier: Apache-2.0
//
// Disease: a pool whose tasks take some 15 ns, through a queue with a lock and two conditions: to hand one over takes several times
// as long. A crew of one has no pool, as in libraries that share a loop out: it does them all by itself.
// Cure: tasks twenty thousand times as large.
#include "crew.h"

#ifdef CURED
enum { TASKS = 3000, STEPS = 200000 };
#else
enum { TASKS = 8000000, STEPS = 10 };
#endif
enum { ROOM = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER, room = PTHREAD_COND_INITIALIZER;
static int queued, closed;

static void *serve_alone(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++)
        hand->result = chew(hand->result, STEPS);
    return NULL;
}

static SEEN int take(void) {
    pthread_mutex_lock(&lock); /* HERE: grain */
    while (queued == 0 && !closed)
        pthread_cond_wait(&some, &lock); /* HERE: grain */
    const int taken = queued > 0;
    queued -= taken;
    pthread_mutex_unlock(&lock); /* HERE: grain */
    pthread_cond_signal(&room);  /* HERE: grain */
    return taken;
}

static void *serve(void *arg) {
    struct hand *hand = arg;
    while (take())
        hand->result = chew(hand->result, STEPS);
    return NULL;
}

static SEEN void post(void) {
    pthread_mutex_lock(&lock); /* HERE: grain */
    while (queued == ROOM)
        pthread_cond_wait(&room, &lock); /* HERE: grain */
    queued++;
    pthread_cond_broadcast(&some); /* HERE: grain */
    pthread_mutex_unlock(&lock);   /* HERE: grain */
}

static void *bring_work(void *arg) {
    for (int i = 0; i < TASKS; i++)
        post();
    pthread_mutex_lock(&lock);
    closed = 1;
    pthread_cond_broadcast(&some);
    pthread_mutex_unlock(&lock);
    return arg;
}

int main(int argc, char **argv) {
    const unsigned size = crew_size(argc, argv);
    if (size == 1)
        crew_work(size, TASKS, serve_alone);
    else
        crew_serve(size, bring_work, serve);
    return 0;
}
