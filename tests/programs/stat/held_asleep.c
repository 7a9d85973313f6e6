// SPDX-License-Identifier: Apache-2.0
//
// Disease: what is not known yet is asked for with the table locked, which takes a while, and all others wait as long.
// Cure: it is asked for without the lock, and put into the table then.
#include "crew.h"

#include <time.h>

enum { QUESTIONS = 240 };

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t table;

static SEEN uint64_t ask(uint64_t question) {                // a slow remote service
    nanosleep(&(struct timespec){.tv_nsec = 4000000}, NULL); /* HERE: held-asleep */
    return question + 1;
}

static SEEN void look_up(uint64_t question) {
#ifdef CURED
    const uint64_t answer = ask(question);
    pthread_mutex_lock(&table_lock);
    table += answer;
    pthread_mutex_unlock(&table_lock);
#else
    pthread_mutex_lock(&table_lock);
    table += ask(question);
    pthread_mutex_unlock(&table_lock);
#endif
}

static void *wonder(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++) {
        hand->result = chew(hand->result, 1000000);
        look_up(hand->result);
    }
    return NULL;
}

int main(int argc, char **argv) {
    crew_work(crew_size(argc, argv), QUESTIONS, wonder);
    return 0;
}
