// SPDX-License-Identifier: Apache-2.0
//
// Disease: small blocks from musl's allocator, which has one lock for all threads. (Built with musl-gcc.)
// Cure: a thread keeps its blocks.
#include "crew.h"

enum { BLOCKS = 8 };

static SEEN uint64_t request(uint64_t state, char **blocks) {
    for (int i = 0; i < BLOCKS; i++) {
#ifndef CURED
        blocks[i] = malloc(32 + (state & 127)); /* HERE: allocator */
#endif
        blocks[i][0] = (char)state;
        state = chew(state, 4);
    }
#ifndef CURED
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]); /* HERE: allocator */
#endif
    return state;
}

static void *serve(void *arg) {
    struct hand *hand = arg;
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = malloc(160);
    for (long i = 0; i < hand->share; i++)
        hand->result = request(hand->result, blocks);
    return NULL;
}

#ifdef CURED
enum { REQUESTS = 10000000 };
#else
enum { REQUESTS = 500000 };
#endif

int main(int argc, char **argv) {
    crew_work(crew_size(argc, argv), REQUESTS, serve);
    return 0;
}
