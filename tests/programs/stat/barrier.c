// SPDX-License-Identifier: Apache-2.0
//
// Disease: threads meet at a barrier after a few microseconds of work each time.
// Cure: the same work, with few meetings.
#include "crew.h"

#ifdef CURED
enum { MEETINGS = 60 };
#else
enum { MEETINGS = 60000 };
#endif
static const long STEPS = 480000000; // of all threads and between all meetings

static pthread_barrier_t barrier;

static SEEN void meet(void) {
    pthread_barrier_wait(&barrier); /* HERE: grain */
}

static void *step(void *arg) {
    struct hand *hand = arg;
    for (int i = 0; i < MEETINGS; i++) {
        hand->result = chew(hand->result, STEPS / MEETINGS / hand->crew);
        meet();
    }
    return NULL;
}

int main(int argc, char **argv) {
    const unsigned size = crew_size(argc, argv);
    if (pthread_barrier_init(&barrier, NULL, size) != 0)
        return 1;
    crew_work(size, 0, step);
    return 0;
}
