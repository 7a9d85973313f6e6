// SPDX-License-Identifier: Apache-2.0
//
// For `thrum ps` to look at. Says "ready" when all is as it says here, and ends when its stdin is closed.
//
//   ults       two threads in each other's way, one that waits for the first, one that computes and never gives its
//              worker back, and one behind that which would continue. The counters of workers can be told apart
//   ults wait  all wait, and a kernel thread from outside is the only one that could change that
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <thrum/thrum.h>
#include <thrum/worker.h>
#include <unistd.h>

static thrum_mutex_t first = THRUM_MUTEX_INITIALIZER, second = THRUM_MUTEX_INITIALIZER;
static int have_both, yielding, spinning;
static thrum_t one, two, third, fourth, fifth;

static void *take_both(thrum_mutex_t *own, thrum_mutex_t *other) {
    thrum_mutex_lock(own);
    __atomic_add_fetch(&have_both, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&have_both, __ATOMIC_SEQ_CST) < 2)
        thrum_yield();
    thrum_mutex_lock(other);
    return NULL;
}

static void *first_then_second(void *unused) {
    (void)unused;
    return take_both(&first, &second);
}

static void *second_then_first(void *unused) {
    (void)unused;
    return take_both(&second, &first);
}

static void *wait_for_the_first(void *unused) {
    (void)unused;
    thrum_join(one, NULL);
    return NULL;
}

__attribute__((noinline)) static void compute(void) {
    __atomic_store_n(&spinning, 1, __ATOMIC_SEQ_CST);
    for (;;)
        __asm__ volatile("");
}

static void *compute_for_ever(void *unused) {
    compute();
    return unused;
}

static void *yield_for_ever(void *unused) {
    __atomic_store_n(&yielding, 1, __ATOMIC_SEQ_CST);
    for (;;)
        thrum_yield();
    return unused;
}

// Are two of the workers' counters the same for all of them?
static bool counters_are_alike(void) {
    enum { COLUMNS = 4 };
    bool differ[COLUMNS][COLUMNS] = {{false}};
    struct thrum_worker_counters all;
    for (unsigned worker = 0; thrum_worker_get_counters(worker, &all) == 0; worker++) {
        const uint64_t column[COLUMNS] = {all.switches, all.steals, all.parks, all.migrations};
        for (int i = 0; i < COLUMNS; i++)
            for (int j = 0; j < i; j++)
                differ[i][j] |= column[i] != column[j];
    }
    for (int i = 0; i < COLUMNS; i++)
        for (int j = 0; j < i; j++)
            if (!differ[i][j])
                return true;
    return false;
}

static void *tell_counters_apart(void *unused) {
    do {
        for (unsigned i = 0; i < 6; i++)
            thrum_migrate(thrum_self(), i % 2);
        thrum_sleep(THRUM_MS);
    } while (counters_are_alike());
    return unused;
}

// As the process sees it itself.
static bool sees_itself(const char *what) {
    char text[256] = "";
    const int file = memfd_create("dump", 0);
    if (thrum_dump(file, 1) != 0 || pread(file, text, sizeof text - 1, 0) < 0)
        _exit(1);
    close(file);
    return strstr(text, what) != NULL;
}

static void say_ready(void) {
    char end;
    puts("ready");
    fflush(stdout);
    while (read(STDIN_FILENO, &end, 1) > 0) {
    }
    _exit(0);
}

static void *look_from_outside(void *unused) {
    while (!sees_itself(" 0 running, 0 new, 0 ready, 1 waiting, 0 ended"))
        usleep(1000);
    say_ready();
    return unused;
}

static void wait_for_ever(void) {
    thrum_event_t event = THRUM_EVENT_INITIALIZER;
    pthread_t outside;
    if (pthread_create(&outside, NULL, look_from_outside, NULL) == 0)
        thrum_event_wait(&event);
}

int main(int argc, char **argv) {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); // the observer may be no ancestor of ours
    const struct thrum_config config = {.workers = 3, .preempt = {.mode = THRUM_PREEMPT_NONE}};
    thrum_attr_t queued;
    thrum_t mixer;
    if (thrum_init(&config) != 0)
        return 1;
    if (argc > 1 && strcmp(argv[1], "wait") == 0)
        wait_for_ever();
    thrum_attr_init(&queued);
    thrum_attr_set_flags(&queued, THRUM_SPAWN_QUEUED);
    thrum_spawn(&mixer, &queued, tell_counters_apart, NULL);
    thrum_join(mixer, NULL);
    thrum_spawn(&one, &queued, first_then_second, NULL);
    thrum_spawn(&two, &queued, second_then_first, NULL);
    const bool evil = argc > 1 && strcmp(argv[1], "evil") == 0;
    thrum_set_name(one, evil ? "o\x1b[5m\xffne" : "one");
    thrum_set_name(two, evil ? "\n0x1\t\xc2\x9b\xc3\xa9" : "two");
    thrum_spawn(&third, &queued, wait_for_the_first, NULL);
    thrum_attr_set_worker(&queued, 2); /* not the one that main needs */
    thrum_spawn(&fifth, &queued, yield_for_ever, NULL);
    while (!__atomic_load_n(&yielding, __ATOMIC_SEQ_CST))
        thrum_sleep(THRUM_MS);
    thrum_spawn(&fourth, &queued, compute_for_ever, NULL);
    while (!__atomic_load_n(&spinning, __ATOMIC_SEQ_CST))
        thrum_sleep(THRUM_MS);
    while (!sees_itself(" 3 waiting"))
        thrum_sleep(THRUM_MS);
    say_ready();
}
