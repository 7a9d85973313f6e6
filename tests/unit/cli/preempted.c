// SPDX-License-Identifier: Apache-2.0
//
// For `thrum ps` to look at: one thread that was preempted in the middle of what it computes, and stays so, as the one
// that has its worker is not preempted any more. The mode is that of THRUM_PREEMPT. With "held" instead one that no tick reaches,
// as it blocks all signals, one that waits for its turn behind it, and two in blocking calls. Says "ready" and ends when its
// stdin is closed.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <thrum/preempt.h>
#include <thrum/thrum.h>
#include <thrum/worker.h>
#include <unistd.h>

static int stay, stays;

__attribute__((noinline)) static void compute(void) {
    for (;;)
        if (__atomic_load_n(&stay, __ATOMIC_RELAXED)) {
            thrum_nopreempt_begin();
            if (!__atomic_exchange_n(&stays, 1, __ATOMIC_SEQ_CST))
                for (;;)
                    __asm__ volatile("");
            thrum_nopreempt_end();
        }
}

static void *compute_for_ever(void *unused) {
    compute();
    return unused;
}

static void wait_for_preemptions(uint64_t count) {
    struct thrum_worker_counters counters = {.preemptions = 0};
    while (counters.preemptions < count) {
        thrum_sleep(THRUM_MS);
        thrum_worker_get_counters(1, &counters);
    }
}

static void *pause_for_ever(void *unused) {
    for (;;)
        pause();
    return unused;
}

static int holds, calls;

static void *block_signals(void *unused) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    __atomic_store_n(&holds, 1, __ATOMIC_SEQ_CST);
    return pause_for_ever(unused);
}

static void *called(void *unused) {
    __atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST);
    return pause_for_ever(unused);
}

static void *call(void *unused) {
    thrum_blocking(called, unused, NULL);
    return unused;
}

static int hold_worker_1(const thrum_attr_t *there) {
    int error = thrum_spawn(NULL, there, block_signals, NULL);
    while (error == 0 && !__atomic_load_n(&holds, __ATOMIC_SEQ_CST))
        thrum_sleep(THRUM_MS);
    error |= thrum_spawn(NULL, there, call, NULL);
    for (int i = 0; i < 2; i++)
        error |= thrum_spawn(NULL, NULL, call, NULL);
    while (error == 0 && __atomic_load_n(&calls, __ATOMIC_SEQ_CST) < 2)
        thrum_sleep(THRUM_MS);
    return error;
}

static int wait_for_the_end(void) {
    char end;
    puts("ready");
    fflush(stdout);
    while (read(STDIN_FILENO, &end, 1) > 0) {
    }
    _exit(0);
}

int main(int count, char **words) {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); // the observer may be no ancestor of ours
    const struct thrum_config config = {.workers = 2, .preempt = {.slice = 1000}};
    thrum_attr_t queued;
    if (thrum_init(&config) != 0)
        return 1;
    thrum_attr_init(&queued);
    thrum_attr_set_flags(&queued, THRUM_SPAWN_QUEUED);
    thrum_attr_set_worker(&queued, 1); /* not the one that main needs */
    if (count > 1 && strcmp(words[1], "held") == 0)
        return hold_worker_1(&queued) != 0 ? 1 : wait_for_the_end();
    for (int i = 0; i < 2; i++)
        if (thrum_spawn(NULL, &queued, compute_for_ever, NULL) != 0)
            return 1;
    wait_for_preemptions(4); /* both have begun, and one is in the middle */
    __atomic_store_n(&stay, 1, __ATOMIC_RELAXED);
    while (!__atomic_load_n(&stays, __ATOMIC_SEQ_CST))
        thrum_sleep(THRUM_MS);
    return wait_for_the_end();
}
