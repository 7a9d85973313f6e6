// SPDX-License-Identifier: Apache-2.0
//
// Disease: blocks are freed by another thread than the one that allocated them (after Larson and Krishnan, "Memory
// allocation for long-running server applications", ISMM 1998): free() takes the lock of the arena that a block is from,
// while the thread whose arena that is allocates from it.
// Cure: each thread frees its own.
#include <stdatomic.h>

#include "crew.h"

enum { HELD = 64 };

static _Atomic(char *) exchange[HELD];

static SEEN char *allocate(size_t size) {
    char *block = malloc(size); /* HERE: allocator */
    if (block == NULL)
        exit(1);
    block[0] = block[size - 1] = 1;
    return block;
}

static SEEN void release(char *block) {
    free(block); /* HERE: allocator */
}

static void *pass_on(void *arg) {
    struct hand *hand = arg;
    _Atomic(char *) own[HELD] = {NULL};
#ifdef CURED
    _Atomic(char *) *slots = own;
#else
    _Atomic(char *) *slots = exchange;
#endif
    for (long i = 0; i < hand->share; i++) {
        hand->result = chew(hand->result, 5);
        char *block = allocate(1200 + (hand->result >> 32) % 2048);
        release(atomic_exchange(&slots[hand->result >> 58], block));
    }
    for (int i = 0; i < HELD; i++)
        free(own[i]);
    return NULL;
}

int main(int argc, char **argv) {
    crew_work(crew_size(argc, argv), 5000000, pass_on);
    for (int i = 0; i < HELD; i++)
        free(exchange[i]);
    return 0;
}
