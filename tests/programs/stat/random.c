// SPDX-License-Identifier: Apache-2.0
//
// Disease: random() in all threads. It looks like arithmetic and takes a lock inside libc, each time.
// Cure: random_r() with a state of the thread's own.
#include "crew.h"

enum { GROUP = 23, DAYS = 365 };

// Cured they take as long as the others: what is over in a moment is told by what else happens in it.
#ifdef CURED
enum { ATTEMPTS = 8000000 };
#else
enum { ATTEMPTS = 1500000 };
#endif

static SEEN int draw(struct random_data *own) {
#ifdef CURED
    int32_t drawn;
    random_r(own, &drawn);
#else
    (void)own;
    const long drawn = random(); /* HERE: hidden-lock */
#endif
    return (int)(drawn % DAYS);
}

static SEEN int has_shared_birthday(struct random_data *own) {
    char seen[DAYS] = {0};
    int shared = 0;
    for (int i = 0; i < GROUP; i++)
        shared |= seen[draw(own)]++;
    return shared != 0;
}

static void *attempts(void *arg) {
    struct hand *hand = arg;
    char state[128];
    struct random_data own = {0};
    if (initstate_r(hand->index + 1, state, sizeof state, &own) != 0)
        exit(1);
    for (long i = 0; i < hand->share; i++)
        hand->result += (uint64_t)has_shared_birthday(&own);
    return NULL;
}

int main(int argc, char **argv) {
    crew_work(crew_size(argc, argv), ATTEMPTS, attempts);
    return 0;
}
