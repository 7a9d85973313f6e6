// SPDX-License-Identifier: Apache-2.0
//
// Disease: one mutex for a sum, taken for each number, so often that it goes from CPU to CPU all the time, however near these are;
// most of the work is outside of it.
// Cure: each thread sums its own up and adds that at the end.
#include "crew.h"

// Cured it takes as long: what is over in a moment is told by what else happens in it.
#ifdef CURED
enum { NUMBERS = 60000000 };
#else
enum { NUMBERS = 24000000 };
#endif

static pthread_mutex_t pot_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t pot;

static SEEN void put(uint64_t amount) {
    pthread_mutex_lock(&pot_lock); /* HERE: hot-mutex */
    pot = chew(pot + amount, 6);
    pthread_mutex_unlock(&pot_lock);
}

static void *earn(void *arg) {
    struct hand *hand = arg;
    uint64_t number = hand->result;
    for (long i = 0; i < hand->share; i++) {
        number = chew(number, 12);
#ifdef CURED
        hand->result = chew(hand->result + number, 6);
#else
        put(number);
#endif
    }
    put(hand->result);
    return NULL;
}

int main(int argc, char **argv) {
    crew_work(crew_size(argc, argv), NUMBERS, earn);
    return 0;
}
