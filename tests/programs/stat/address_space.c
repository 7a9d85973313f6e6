// SPDX-License-Identifier: Apache-2.0
//
// Disease: each thread maps and unmaps a small buffer for each request: the kernel locks the one address space for that.
// Cure: a buffer that each thread keeps.
#include <sys/mman.h>

#include "crew.h"

enum { SIZE = 16 << 10, PAGE = 4096 };

static SEEN unsigned char *get_buffer(void) {
    void *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                    0); /* HERE: address-space */
    if (at == MAP_FAILED)
        exit(1);
    return at;
}

static SEEN void give_back(unsigned char *at) {
    if (munmap(at, SIZE) != 0) /* HERE: address-space */
        exit(1);
}

static void *serve(void *arg) {
    struct hand *hand = arg;
#ifdef CURED
    unsigned char *kept = get_buffer();
#endif
    for (long i = 0; i < hand->share; i++) {
#ifdef CURED
        unsigned char *buffer = kept;
#else
        unsigned char *buffer = get_buffer();
#endif
        for (int page = 0; page < SIZE / PAGE; page++)
            buffer[page * PAGE] = (unsigned char)hand->result;
        hand->result = chew(hand->result + buffer[0], 1000);
#ifndef CURED
        give_back(buffer);
#endif
    }
#ifdef CURED
    give_back(kept);
#endif
    return NULL;
}

int main(int argc, char **argv) {
#ifdef CURED
    const long requests = 600000;
#else
    const long requests = 60000;
#endif
    crew_work(crew_size(argc, argv), requests, serve);
    return 0;
}
