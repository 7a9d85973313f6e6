// SPDX-License-Identifier: Apache-2.0
//
// Row inherit: the cache wakes threads on a CPU of its choice and gives them back the creator's mask before the program
// runs in them. However the threads come and go, each has its creator's mask from its first instruction, and keeps it.
#include <sched.h>

#include "child.h"

enum { THREADS = 4000, BATCH = 8, CREATORS = 4 };

static __thread cpu_set_t expected;

static cpu_set_t own_mask(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CHECK_SYS(sched_getaffinity(0, sizeof set, &set));
    return set;
}

static void *look(void *creators) {
    cpu_set_t set = own_mask();
    CHECK(CPU_EQUAL(&set, (cpu_set_t *)creators), "%d CPUs instead of the creator's %d", CPU_COUNT(&set),
          CPU_COUNT((cpu_set_t *)creators));
    return NULL;
}

static void *look_again(void *creators) {
    look(creators);
    sched_yield();
    for (volatile int i = 0; i < 20000; i++) {
    }
    return look(creators);
}

static void one_after_another(void *(*start)(void *), int count) {
    expected = own_mask();
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        CHECK_OK(pthread_create(&thread, NULL, start, &expected));
        CHECK_OK(pthread_join(thread, NULL));
    }
}

static void in_batches(void *(*start)(void *), int count) {
    expected = own_mask();
    for (int i = 0; i < count; i += BATCH) {
        pthread_t threads[BATCH];
        for (int k = 0; k < BATCH; k++)
            CHECK_OK(pthread_create(&threads[k], NULL, start, &expected));
        for (int k = 0; k < BATCH; k++)
            CHECK_OK(pthread_join(threads[k], NULL));
    }
}

static void brief_threads(void) {
    one_after_another(look, THREADS);
}

static void longer_threads(void) {
    one_after_another(look_again, THREADS / 4);
}

static void batches(void) {
    in_batches(look, THREADS);
    in_batches(look_again, THREADS / 4);
}

static void pin_to(int nth) {
    cpu_set_t all = own_mask(), one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && nth-- == 0)
            CPU_SET(cpu, &one);
    CHECK_SYS(sched_setaffinity(0, sizeof one, &one));
}

// The creator's mask changes in between: each thread has the one of its own creation.
static void changing_mask(void) {
    const cpu_set_t all = own_mask();
    if (CPU_COUNT(&all) < 2)
        CANNOT("one CPU only");
    for (int i = 0; i < 100; i++) {
        CHECK_SYS(sched_setaffinity(0, sizeof all, &all));
        one_after_another(look, 20);
        pin_to(i % 2);
        one_after_another(look, 20);
    }
}

// So do creators with masks of their own that take each other's idle threads.
static void *create_pinned(void *nth) {
    pin_to((int)(intptr_t)nth);
    one_after_another(look, THREADS / CREATORS);
    return NULL;
}
static void *create_unpinned(void *arg) {
    one_after_another(look, THREADS / CREATORS);
    return arg;
}
static void creators_with_different_masks(void) {
    pthread_t creators[CREATORS];
    const cpu_set_t all = own_mask();
    if (CPU_COUNT(&all) < 2)
        CANNOT("one CPU only");
    for (intptr_t i = 0; i < CREATORS; i++)
        CHECK_OK(
            pthread_create(&creators[i], NULL, i % 2 ? create_pinned : create_unpinned, (void *)(i / 2)));
    for (int i = 0; i < CREATORS; i++)
        CHECK_OK(pthread_join(creators[i], NULL));
}

// A mask that another thread gave a thread while it ran, by its tid, is gone at its end.
static void *wait_for_flag(void *flag) {
    await_flag((int *)flag);
    return NULL;
}
static void set_by_others(void) {
    const cpu_set_t all = own_mask();
    if (CPU_COUNT(&all) < 2)
        CANNOT("one CPU only");
    for (int i = 0; i < 50; i++) {
        int end = 0;
        pthread_t thread;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        CHECK_OK(pthread_create(&thread, NULL, wait_for_flag, &end));
        CHECK_OK(pthread_setaffinity_np(thread, sizeof one, &one));
        set_flag(&end);
        CHECK_OK(pthread_join(thread, NULL));
        one_after_another(look, 5);
    }
}

static const struct check_case cases[] = {
    {"brief_threads", brief_threads, HOLDS_WHEN_SKIPPED},
    {"longer_threads", longer_threads, HOLDS_WHEN_SKIPPED},
    {"batches", batches, HOLDS_WHEN_SKIPPED},
    {"changing_mask", changing_mask, FAILS_WHEN_SKIPPED},
    {"creators_with_different_masks", creators_with_different_masks, FAILS_WHEN_SKIPPED},
    {"set_by_others", set_by_others, FAILS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
