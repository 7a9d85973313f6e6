// SPDX-License-Identifier: Apache-2.0
//
// Disease: all threads read one stream character by character, and each getc() takes its lock.
// Cure: blocks, one fread() for each.
#include "crew.h"

enum { BLOCK = 1 << 14 };

static FILE *source;

static SEEN uint64_t sum_of_block(uint64_t sum) {
#ifdef CURED
    unsigned char block[BLOCK];
    if (fread(block, 1, sizeof block, source) != sizeof block)
        abort();
    for (size_t i = 0; i < sizeof block; i++)
        sum = chew(sum + block[i], 10);
#else
    for (size_t i = 0; i < BLOCK; i++)
        sum = chew(sum + (uint64_t)getc(source), 10); /* HERE: hidden-lock */
#endif
    return sum;
}

static void *read_blocks(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++)
        hand->result = sum_of_block(hand->result);
    return NULL;
}

int main(int argc, char **argv) {
    source = fopen("/dev/zero", "r");
    if (source == NULL)
        abort();
    crew_work(crew_size(argc, argv), 1200, read_blocks);
    return fclose(source) == 0 ? 0 : 1;
}
