// SPDX-License-Identifier: Apache-2.0
//
// Disease: money goes from one account to another under the locks of both, of which the payer's is taken first; two threads
// that pay each other wait for ever.
// Cure: the lock of the account with the lower number is taken first, whichever pays.
#include "crew.h"

enum { PAYMENTS = 250000 };

static struct account {
    pthread_mutex_t lock;
    uint64_t money;
} accounts[2] = {{PTHREAD_MUTEX_INITIALIZER, 0}, {PTHREAD_MUTEX_INITIALIZER, 0}};

#ifdef CURED
static SEEN void pay(unsigned from, uint64_t amount) {
    pthread_mutex_lock(&accounts[0].lock);
    pthread_mutex_lock(&accounts[1].lock);
    accounts[from].money -= amount;
    accounts[1 - from].money += amount;
    pthread_mutex_unlock(&accounts[1].lock);
    pthread_mutex_unlock(&accounts[0].lock);
}
#else
static pthread_barrier_t both; // have one lock each, as comes to pass sooner or later

static SEEN void pay(unsigned from, uint64_t amount) {
    pthread_mutex_lock(&accounts[from].lock);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&accounts[1 - from].lock); /* HERE: deadlock */
    accounts[from].money -= amount;
    accounts[1 - from].money += amount;
    pthread_mutex_unlock(&accounts[1 - from].lock);
    pthread_mutex_unlock(&accounts[from].lock);
}
#endif

static void *trade(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++) {
        hand->result = chew(hand->result, 2000);
        pay(hand->index % 2, hand->result % 100);
    }
    return NULL;
}

int main(int argc, char **argv) {
#ifndef CURED
    if (pthread_barrier_init(&both, NULL, 2) != 0)
        return 1;
#endif
    crew_work(crew_size(argc, argv), PAYMENTS, trade);
    return 0;
}
