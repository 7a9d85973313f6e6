// SPDX-License-Identifier: Apache-2.0
//
// Disease: a semaphore lets one thread at a time ask a slow service, and what it answers needs no lock.
// Cure: only what is shared is changed behind the semaphore.
#include <semaphore.h>
#include <time.h>

#include "crew.h"

enum { QUESTIONS = 240 };

static sem_t turn;
static uint64_t table;

static SEEN uint64_t ask(uint64_t question) {
    nanosleep(&(struct timespec){.tv_nsec = 4000000}, NULL); /* HERE: held-asleep */
    return question + 1;
}

static void take_turn(void) {
    while (sem_wait(&turn) != 0)
        continue;
}

static SEEN void look_up(uint64_t question) {
#ifdef CURED
    const uint64_t answer = ask(question);
    take_turn();
    table += answer;
#else
    take_turn();
    table += ask(question);
#endif
    sem_post(&turn);
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
    if (sem_init(&turn, 0, 1) != 0)
        return 1;
    crew_work(crew_size(argc, argv), QUESTIONS, wonder);
    return 0;
}
