// SPDX-License-Identifier: Apache-2.0
//
// Disease: one lock around everything. Only one thread works at a time, whatever their number.
// Cure: a part of the table and a lock for each of them.
#include "crew.h"

enum { CELLS = 4096, PARTS = 64 };

static struct part {
    pthread_mutex_t lock;
    uint64_t cells[CELLS / PARTS];
} parts[PARTS];

#ifndef CURED
static pthread_mutex_t everything = PTHREAD_MUTEX_INITIALIZER;
#endif

static void update_part(struct part *part) {
    for (int i = 0; i < CELLS / PARTS; i++)
        part->cells[i] = chew(part->cells[i] + 1, 1000);
}

static SEEN void update(unsigned which) {
#ifdef CURED
    pthread_mutex_t *lock = &parts[which % PARTS].lock;
#else
    pthread_mutex_t *lock = &everything;
#endif
    pthread_mutex_lock(lock); /* HERE: one-lock */
    update_part(&parts[which % PARTS]);
    pthread_mutex_unlock(lock);
}

static void *update_some(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++)
        update((unsigned)(i * hand->crew) + hand->index);
    return NULL;
}

int main(int argc, char **argv) {
    const unsigned size = crew_size(argc, argv);
    for (int i = 0; i < PARTS; i++)
        pthread_mutex_init(&parts[i].lock, NULL);
    crew_work(size, 6000, update_some);
    return 0;
}
