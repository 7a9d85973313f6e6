// SPDX-License-Identifier: Apache-2.0
//
// Disease: a thread for each task, and tasks of some twenty microseconds: making and ending threads is most of the work.
// Cure: a crew that lives as long as there are tasks.
#include "crew.h"

enum { TASKS = 6000, STEPS = 20000 };

static void *task(void *arg) {
    struct hand *hand = arg;
    hand->result = chew(hand->result, STEPS);
    return NULL;
}

#ifdef CURED
static void *tasks(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++)
        task(hand);
    return NULL;
}

static void run(unsigned size) {
    crew_work(size, TASKS, tasks);
}
#else
static SEEN void start_round(struct hand *hands, unsigned size) {
    for (unsigned i = 0; i < size; i++) {
        hands[i].result = i;
        if (pthread_create(&hands[i].thread, NULL, task, &hands[i]) != 0) /* HERE: thread-churn */
            exit(1);
    }
}

static void run(unsigned size) {
    static struct hand hands[MOST_THREADS];
    for (unsigned done = 0; done < TASKS; done += size) {
        start_round(hands, size);
        for (unsigned i = 0; i < size; i++)
            crew_join(&hands[i]);
    }
}
#endif

int main(int argc, char **argv) {
    run(crew_size(argc, argv));
    return 0;
}
