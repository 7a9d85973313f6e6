// SPDX-License-Identifier: Apache-2.0
//
// Disease: malloc with a single arena, as MALLOC_ARENA_MAX=1 in the environment makes it, "to save memory". The blocks are
// too large for the threads' own caches, so that each malloc() and each free() takes the arena's lock.
// Cure: the arenas that glibc makes by itself.
#include <malloc.h>

#include "crew.h"

enum { HELD = 64 };

static SEEN char *renew(char *block, size_t size) {
    free(block);          /* HERE: allocator */
    block = malloc(size); /* HERE: allocator */
    if (block == NULL)
        exit(1);
    block[0] = block[size - 1] = 1;
    return block;
}

static void *renew_blocks(void *arg) {
    struct hand *hand = arg;
    char *held[HELD] = {NULL};
    for (long i = 0; i < hand->share; i++) {
        hand->result = chew(hand->result, 5);
        char **block = &held[hand->result >> 58];
        *block = renew(*block, 1200 + (hand->result >> 32) % 2048);
    }
    for (int i = 0; i < HELD; i++)
        free(held[i]);
    return NULL;
}

int main(int argc, char **argv) {
#ifndef CURED
    if (mallopt(M_ARENA_MAX, 1) != 1)
        return 1;
#endif
    crew_work(crew_size(argc, argv), 5000000, renew_blocks);
    return 0;
}
