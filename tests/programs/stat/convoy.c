// SPDX-License-Identifier: Apache-2.0
//
// Disease: a lock convoy. A mutex with priority inheritance is handed over: the owner that unlocks it gives it to the thread that
// has waited longest, even if that sleeps. Once threads have queued up, each of them waits for a context switch of each
// other, for a section of some microseconds (Blasgen, Gray, Mitoma and Price, "The convoy phenomenon", 1979).
// Cure: the section is done for a hundred items at a time; then none queues.
#include "crew.h"

static pthread_mutex_t queue_lock;
static uint64_t queue_sum;

static SEEN void append(uint64_t number) {
    pthread_mutex_lock(&queue_lock); /* HERE: convoy */
    queue_sum = chew(queue_sum + number, 16000);
    pthread_mutex_unlock(&queue_lock);
}

static void *produce(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++) {
        hand->result = chew(hand->result, 8000 + (long)(hand->result >> 50)); // up to 24000, each time others
#ifdef CURED
        hand->result = chew(hand->result, 16000);
        if (i % 100 != 99)
            continue;
#endif
        append(hand->result);
    }
    return NULL;
}

int main(int argc, char **argv) {
    const unsigned size = crew_size(argc, argv);
    pthread_mutexattr_t handed_over;
    if (pthread_mutexattr_init(&handed_over) != 0 ||
        pthread_mutexattr_setprotocol(&handed_over, PTHREAD_PRIO_INHERIT) != 0 ||
        pthread_mutex_init(&queue_lock, &handed_over) != 0)
        return 1;
    crew_work(size, 10000, produce);
    return 0;
}
