// SPDX-License-Identifier: Apache-2.0
//
// For `thrum ps` to look at: two threads in each other's way, one that waits for the first, one that computes and never gives its worker back. Says
// "ready" and ends when its stdin is closed.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <thrum/thrum.h>
#include <unistd.h>

static thrum_mutex_t first = THRUM_MUTEX_INIT, second = THRUM_MUTEX_INIT;
static int have_both, spinning;
static thrum_t one, two, third, fourth;

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

// As the process sees it itself.
static int all_wait(void) {
    char text[256] = "";
    const int file = memfd_create("dump", 0);
    if (thrum_dump(file, 1) != 0 || pread(file, text, sizeof text - 1, 0) < 0)
        _exit(1);
    close(file);
    return strstr(text, " 3 waiting") != NULL;
}

int main(void) {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); // who looks may be no forebear of ours
    const struct thrum_config config = {.workers = 3};
    thrum_attr_t queued;
    char end;
    if (thrum_init(&config) != 0)
        return 1;
    thrum_attr_init(&queued);
    thrum_attr_set_flags(&queued, THRUM_SPAWN_QUEUED);
    thrum_spawn(&one, &queued, first_then_second, NULL);
    thrum_spawn(&two, &queued, second_then_first, NULL);
    thrum_set_name(one, "one");
    thrum_set_name(two, "two");
    thrum_spawn(&third, &queued, wait_for_the_first, NULL);
    thrum_attr_set_worker(&queued, 2); /* not the one that main needs */
    thrum_spawn(&fourth, &queued, compute_for_ever, NULL);
    while (!__atomic_load_n(&spinning, __ATOMIC_SEQ_CST))
        thrum_sleep(THRUM_MS);
    while (!all_wait())
        thrum_sleep(THRUM_MS);
    puts("ready");
    fflush(stdout);
    while (read(STDIN_FILENO, &end, 1) > 0) {
    }
    _exit(0);
}
