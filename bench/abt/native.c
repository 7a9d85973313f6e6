// SPDX-License-Identifier: Apache-2.0
/* What <thrum/thrum.h> has for the operations of abt.c: the same loops on one worker, without preemption. Prints a line for each, with
 * its name there. abt.c runs this. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <thrum/sync.h>
#include <thrum/thrum.h>

#include "measure.h"

static thrum_t threads[THREADS];
static thrum_event_t there = THRUM_EVENT_INITIALIZER, back = THRUM_EVENT_INITIALIZER;
static thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
static thrum_cond_t cond = THRUM_COND_INITIALIZER;
static int turn;

static void *nothing(void *arg) {
    return arg;
}

static void create_many(void) {
    for (int batch = 0; batch < BATCHES; batch++) {
        for (int i = 0; i < THREADS; i++)
            thrum_spawn(&threads[i], NULL, nothing, NULL);
        for (int i = 0; i < THREADS; i++)
            thrum_join(threads[i], NULL);
    }
}

static void create_one(void) {
    for (int i = 0; i < BATCHES * THREADS; i++) {
        thrum_spawn(&threads[0], NULL, nothing, NULL);
        thrum_join(threads[0], NULL);
    }
}

static void run_two(void *(*one)(void *), void *(*other)(void *)) {
    static int which[2] = {0, 1};
    thrum_spawn(&threads[0], NULL, one, &which[0]);
    thrum_spawn(&threads[1], NULL, other, &which[1]);
    thrum_join(threads[0], NULL);
    thrum_join(threads[1], NULL);
}

static void *yields(void *arg) {
    for (int i = 0; i < TURNS; i++)
        thrum_yield();
    return arg;
}

static void yield(void) {
    run_two(yields, yields);
}

static void *sends(void *arg) {
    for (int i = 0; i < TURNS; i++) {
        thrum_event_set(&there);
        thrum_event_wait(&back);
        thrum_event_reset(&back);
    }
    return arg;
}

static void *answers(void *arg) {
    for (int i = 0; i < TURNS; i++) {
        thrum_event_wait(&there);
        thrum_event_reset(&there);
        thrum_event_set(&back);
    }
    return arg;
}

static void event(void) {
    run_two(sends, answers);
}

static void *takes_turns(void *arg) {
    int me = *(int *)arg;
    for (int i = 0; i < TURNS; i++) {
        thrum_mutex_lock(&mutex);
        while (turn != me)
            thrum_cond_wait(&cond, &mutex);
        turn = !me;
        thrum_cond_signal(&cond);
        thrum_mutex_unlock(&mutex);
    }
    return arg;
}

static void condition(void) {
    turn = 0;
    run_two(takes_turns, takes_turns);
}

static void lock(void) {
    for (int i = 0; i < TURNS; i++) {
        thrum_mutex_lock(&mutex);
        thrum_mutex_unlock(&mutex);
    }
}

static const struct {
    const char *name; /* abt.c's */
    void (*run)(void);
    double count;
} operations[] = {
    {"create + free, 1000 at a time", create_many, (double)BATCHES *THREADS},
    {"create + free, one at a time", create_one, (double)BATCHES *THREADS},
    {"yield", yield, 2.0 * TURNS},
    {"eventual, round trip", event, TURNS},
    {"condition, round trip", condition, TURNS},
    {"mutex, lock + unlock", lock, TURNS},
};

int main(void) {
    struct thrum_config config = {.workers = 1, .preempt = {.mode = THRUM_PREEMPT_NONE}};
    if (thrum_init(&config) != 0)
        return EXIT_FAILURE;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        printf("%f %s\n", ns_each(operations[i].run, operations[i].count, CLOCK_PROCESS_CPUTIME_ID),
               operations[i].name);
    thrum_fini();
    return EXIT_SUCCESS;
}
