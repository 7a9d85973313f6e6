// SPDX-License-Identifier: Apache-2.0
//
// What the programs of this folder have in common: a crew of as many threads as the first argument says does a fixed
// amount of work, which is shared out evenly and told in operations, not in time. So two runs differ by the number of
// threads alone. They print nothing; the exit code is 0 unless something failed.
//
// Each source makes two programs: one with the disease that its first lines tell, and, compiled with CURED, one without.
// The lines that are to blame are marked HERE with the name of the rule; check.py looks for these marks.
#ifndef THRUM_TESTS_STAT_CREW_H
#define THRUM_TESTS_STAT_CREW_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A function that stacks must show.
#define SEEN __attribute__((noinline))

enum { MOST_THREADS = 256 };

struct hand { // one thread of the crew; in cache lines of its own
    unsigned index, crew;
    long share; // how many of the operations are its own
    uint64_t result;
    pthread_t thread;
} __attribute__((aligned(128)));

static volatile uint64_t crew_sum; // of all results: what is used must be computed

static inline unsigned crew_size(int argc, char **argv) {
    const long size = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    if (size < 1 || size > MOST_THREADS) {
        fprintf(stderr, "usage: %s THREADS (1 to %d)\n", argv[0], MOST_THREADS);
        exit(2);
    }
    return (unsigned)size;
}

static inline void crew_start(struct hand *hand, void *(*work)(void *)) {
    const int error = pthread_create(&hand->thread, NULL, work, hand);
    if (error != 0) {
        fprintf(stderr, "pthread_create: %s\n", strerror(error));
        exit(1);
    }
}

static inline void crew_join(struct hand *hand) {
    if (pthread_join(hand->thread, NULL) != 0)
        exit(1);
    crew_sum = crew_sum + hand->result;
}

// Has `size` threads do `total` operations. A crew of one is a thread as well: a C library treats a program that has
// never made one differently.
static inline void crew_work(unsigned size, long total, void *(*work)(void *)) {
    static struct hand hands[MOST_THREADS];
    for (unsigned i = 0; i < size; i++) {
        const long begin = total * (long)i / (long)size, end = total * ((long)i + 1) / (long)size;
        hands[i].index = i;
        hands[i].crew = size;
        hands[i].share = end - begin;
        hands[i].result = i + 1;
        crew_start(&hands[i], work);
    }
    for (unsigned i = 0; i < size; i++)
        crew_join(&hands[i]);
}

// Has `size` threads serve what one more thread, the source, brings them, until it has told them to end.
static inline void crew_serve(unsigned size, void *(*bring)(void *), void *(*serve)(void *)) {
    static struct hand source;
    crew_start(&source, bring);
    crew_work(size, 0, serve);
    crew_join(&source);
}

// So many steps of arithmetic, each of which needs the one before: some 4 cycles a step on any processor.
static inline uint64_t chew(uint64_t state, long steps) {
    for (long i = 0; i < steps; i++)
        state = state * 6364136223846793005U + 1442695040888963407U;
    return state;
}

#endif
