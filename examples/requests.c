// SPDX-License-Identifier: Apache-2.0
/* A server on one worker whose requests are threads. Most take some microseconds, one a fifth of a second, and
 * one never ends: a bug. Since threads are preempted, the short ones are answered all the same, while the long one
 * computes, and beside the one that never ends.
 *
 *     requests                preempted after a millisecond, if others wait
 *     requests cooperative    not preempted: the long one has the worker until it is done. The one that never ends is left
 *                             out, since no other thread would ever run again
 *
 * docs/studies/tail-latency.md measures such a server. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <thrum/thrum.h>

enum { SHORT_ONES = 100, SHORT_STEPS = 5000, LONG_STEPS = 100000000 };

static void compute(long steps) {
    for (volatile long left = steps; left > 0; left--) {
    }
}

static bool long_one_is_answered;

static void *serve_long(void *unused) {
    (void)unused;
    compute(LONG_STEPS);
    __atomic_store_n(&long_one_is_answered, true, __ATOMIC_RELEASE);
    return NULL;
}

static void *serve_runaway(void *unused) {
    volatile unsigned long turns = 0;
    (void)unused;
    for (;;)
        turns++;
    return NULL;
}

struct request {
    thrum_t thread;
    uint64_t arrived, answered; /* ns */
    bool before_long_one;
};

static void *serve_short(void *arg) {
    struct request *request = arg;
    compute(SHORT_STEPS);
    request->answered = thrum_now();
    request->before_long_one = !__atomic_load_n(&long_one_is_answered, __ATOMIC_ACQUIRE);
    return NULL;
}

/* One comes every 100 us; the receiving thread needs the worker, too. Its delay counts. */
static bool receive(struct request requests[SHORT_ONES]) {
    uint64_t next = thrum_now();
    for (int i = 0; i < SHORT_ONES; i++) {
        thrum_sleep_until(next += 100 * THRUM_US);
        requests[i].arrived = next;
        if (thrum_spawn(&requests[i].thread, NULL, serve_short, &requests[i]) != 0)
            return false;
    }
    for (int i = 0; i < SHORT_ONES; i++)
        thrum_join(requests[i].thread, NULL);
    return true;
}

static void report(const struct request requests[SHORT_ONES], const char *beside) {
    int before = 0;
    uint64_t longest = 0;
    for (int i = 0; i < SHORT_ONES; i++) {
        uint64_t took = requests[i].answered - requests[i].arrived;
        longest = took > longest ? took : longest;
        before += requests[i].before_long_one;
    }
    printf("%d of %d short requests were answered before %s was, each within %.1f ms\n", before, SHORT_ONES,
           beside, (double)longest / (double)THRUM_MS);
}

int main(int argc, char **argv) {
    bool cooperative = argc > 1 && strcmp(argv[1], "cooperative") == 0;
    struct thrum_config config = {.workers = 1};
    static struct request requests[SHORT_ONES];
    thrum_t long_one;
    config.preempt.mode = cooperative ? THRUM_PREEMPT_NONE : THRUM_PREEMPT_LEND;
    config.preempt.slice = 1000; /* us */
    if (thrum_init(&config) != 0 || thrum_spawn(&long_one, NULL, serve_long, NULL) != 0 || !receive(requests))
        return 1;
    thrum_join(long_one, NULL);
    report(requests, "a long one");
    if (cooperative)
        return thrum_fini();

    long_one_is_answered = false; /* from here on: the one that never will be */
    if (thrum_spawn(NULL, NULL, serve_runaway, NULL) != 0 || !receive(requests))
        return 1;
    report(requests, "one that never ends");
    return 0; /* without thrum_fini, which would wait for it; the end of the process does not */
}
