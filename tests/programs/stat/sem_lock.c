// SPDX-License-Identifier: Apache-2.0
//
// Disease: a semaphore of one is the lock around a table that all threads change.
// Cure: a table and a semaphore for each.
#include <semaphore.h>

#include "crew.h"

static struct table {
    sem_t lock;
    uint64_t cells[1024];
} tables[64] __attribute__((aligned(128)));

static SEEN void update(struct table *table, uint64_t key) {
    sem_wait(&table->lock); /* HERE: convoy HERE: hot-mutex HERE: one-lock */
    uint64_t *cell = &table->cells[key & 1023];
    *cell = chew(*cell + key, 300);
    sem_post(&table->lock); /* HERE: convoy HERE: hot-mutex HERE: one-lock */
}

static void *change(void *arg) {
    struct hand *hand = arg;
#ifdef CURED
    struct table *table = &tables[hand->index & 63];
#else
    struct table *table = &tables[0];
#endif
    for (long i = 0; i < hand->share; i++)
        update(table, hand->result = chew(hand->result, 10));
    return NULL;
}

int main(int argc, char **argv) {
    for (int i = 0; i < 64; i++)
        sem_init(&tables[i].lock, 0, 1);
    crew_work(crew_size(argc, argv), 1500000, change);
    return 0;
}
