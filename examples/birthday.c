// SPDX-License-Identifier: Apache-2.0
// A program that threads make slower: how many of a group of 23 share a birthday, in the mean of many attempts, which are
// shared out among threads (after Marc Brooker, "Make Your Program Slower With Threads"). The threads have nothing to do
// with each other. Or have they? docs/studies/birthday.md measures it; `thrum stat --sweep 1,2,4 -- ./birthday {}` tells why.
// cc -O2 -g birthday.c -pthread -o birthday && ./birthday [THREADS [ATTEMPTS [random|random_r]]]
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 23, DAYS = 365, MOST_THREADS = 64 };

struct simulation {
    pthread_t thread;
    unsigned seed;
    long attempts, shared;
};

static int use_random_r;

static int draw_birthday(struct random_data *own) {
    int32_t number;
    if (!use_random_r)
        return (int)(random() % DAYS);
    random_r(own, &number);
    return number % DAYS;
}

static int compare(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

static int count_shared(struct random_data *own) {
    int birthdays[GROUP], shared = 0;
    for (int i = 0; i < GROUP; i++)
        birthdays[i] = draw_birthday(own);
    qsort(birthdays, GROUP, sizeof birthdays[0], compare);
    for (int i = 1; i < GROUP; i++)
        shared += birthdays[i] == birthdays[i - 1];
    return shared;
}

static void *simulate(void *arg) {
    struct simulation *simulation = arg;
    struct random_data own = {0};
    char state[128]; /* as large as random()'s */
    initstate_r(simulation->seed, state, sizeof state, &own);
    long shared = 0;
    for (long i = 0; i < simulation->attempts; i++)
        shared += count_shared(&own);
    simulation->shared = shared;
    return NULL;
}

int main(int argc, char **argv) {
    static struct simulation simulations[MOST_THREADS];
    const long threads = argc > 1 ? atol(argv[1]) : 1, attempts = argc > 2 ? atol(argv[2]) : 10000000;
    use_random_r = argc > 3 && strcmp(argv[3], "random_r") == 0;
    if (threads < 1 || threads > MOST_THREADS || attempts < 1 || argc > 4 ||
        (argc > 3 && !use_random_r && strcmp(argv[3], "random") != 0)) {
        fprintf(stderr, "usage: %s [THREADS (1 to %d) [ATTEMPTS [random|random_r]]]\n", argv[0],
                MOST_THREADS);
        return 2;
    }
    for (long i = 0; i < threads; i++) {
        simulations[i].seed = (unsigned)i + 1;
        simulations[i].attempts = attempts * (i + 1) / threads - attempts * i / threads;
        if (pthread_create(&simulations[i].thread, NULL, simulate, &simulations[i]) != 0)
            return 1;
    }
    long shared = 0;
    for (long i = 0; i < threads; i++) {
        pthread_join(simulations[i].thread, NULL);
        shared += simulations[i].shared;
    }
    printf("shared birthdays in a group of %d: %.2f in the mean of %ld attempts\n", GROUP,
           (double)shared / (double)attempts, attempts);
    return 0;
}
