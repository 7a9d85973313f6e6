// SPDX-License-Identifier: Apache-2.0
//
// A user's program that is instrumented, on a libthrum that is not (check-instrumented.sh): with AddressSanitizer or
// ThreadSanitizer. As it is it has nothing to report; told to, it has one bug of the kind that each finds.
//
//   instrumented right|freed|races
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <thrum/thrum.h>

enum { THREADS = 200 };

static thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
static long under_mutex, unlocked_count;
static int *passed[4];
static thrum_channel_t numbers = THRUM_CHANNEL_INITIALIZER(passed);
static int arrived;

/* One number in, one out: from whomever it is. */
static int pass_on(void) {
    int *mine = malloc(sizeof *mine), *others;
    *mine = 1;
    if (thrum_channel_send(&numbers, &mine) != 0 || thrum_channel_receive(&numbers, &others) != 0)
        return 0;
    int number = *others;
    free(others);
    return number;
}

/* Its stack is used, left by switches in the middle, and reused later; its joiner sees what it writes. */
static void *work(void *arg) {
    char text[512];
    long *heap = malloc(sizeof *heap);
    memset(text, (int)(long)arg, sizeof text);
    *heap = text[100];
    thrum_yield();
    int number = pass_on();
    thrum_mutex_lock(&mutex);
    under_mutex += number;
    thrum_yield();
    thrum_mutex_unlock(&mutex);
    long result = *heap + text[511];
    free(heap);
    return (void *)result;
}

static int is_right(void) {
    thrum_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        if (thrum_spawn(&threads[i], NULL, work, (void *)(i % 100)) != 0)
            return 0;
    for (long i = 0; i < THREADS; i++) {
        void *result;
        if (thrum_join(threads[i], &result) != 0 || (long)result != 2 * (i % 100))
            return 0;
    }
    return under_mutex == THREADS;
}

static void *use_freed(void *arg) {
    int *numbers = malloc(10 * sizeof *numbers);
    memset(numbers, 0, 10 * sizeof *numbers);
    free(numbers);
    thrum_yield();
    printf("%d\n", numbers[(long)arg]);
    return NULL;
}

/* Both are there at once, on two workers, and nothing orders what they do. */
static void *race(void *arg) {
    __atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&arrived, __ATOMIC_RELAXED) < 2)
        thrum_yield();
    unlocked_count++;
    return arg;
}

static int run(void *(*fn)(void *), unsigned count) {
    thrum_t threads[2];
    for (unsigned i = 0; i < count; i++) {
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        thrum_attr_set_worker(&attr, i);
        if (thrum_spawn(&threads[i], &attr, fn, (void *)3) != 0)
            return 0;
    }
    for (unsigned i = 0; i < count; i++)
        if (thrum_join(threads[i], NULL) != 0)
            return 0;
    return 1;
}

int main(int argc, char **argv) {
    struct thrum_config config = {.workers = 2};
    int done = 0;
    if (argc != 2 || thrum_init(&config) != 0)
        return 2;
    if (strcmp(argv[1], "right") == 0)
        done = is_right();
    else if (strcmp(argv[1], "freed") == 0)
        done = run(use_freed, 1);
    else if (strcmp(argv[1], "races") == 0)
        done = run(race, 2);
    return done && thrum_fini() == 0 ? 0 : 3;
}
