// SPDX-License-Identifier: Apache-2.0
//
// Disease: a semaphore of a set (semop) lets one thread at a time ask a slow service, and what it answers needs no lock.
// Cure: only what is shared is changed behind the semaphore.
#include <sys/ipc.h>
#include <sys/sem.h>
#include <time.h>

#include "crew.h"

enum { QUESTIONS = 240 };

static int turn; // a set of one
static uint64_t table;

static SEEN uint64_t ask(uint64_t question) {
    nanosleep(&(struct timespec){.tv_nsec = 4000000}, NULL); /* HERE: held-asleep */
    return question + 1;
}

static SEEN void move(int by) {
    struct sembuf operation = {.sem_num = 0, .sem_op = (short)by};
    if (semop(turn, &operation, 1) != 0)
        exit(1);
}

static SEEN void look_up(uint64_t question) {
#ifdef CURED
    const uint64_t answer = ask(question);
    move(-1);
    table += answer;
#else
    move(-1);
    table += ask(question);
#endif
    move(1);
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
    const unsigned size = crew_size(argc, argv);
    turn = semget(IPC_PRIVATE, 1, 0600);
    if (turn < 0)
        return 1;
    move(1);
    crew_work(size, QUESTIONS, wonder);
    return semctl(turn, 0, IPC_RMID) != 0;
}
