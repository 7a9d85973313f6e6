// SPDX-License-Identifier: Apache-2.0
/* What check-debugger.sh and check-perf.sh look at: threads that wait for each other by computing, more than there
 * are workers, so that only preemption makes progress (THRUM_PREEMPT says which). Ends with the status 7 and a line.
 * Usage: preempted [wait]: runs until a debugger sets `leave`, and says when it can be attached to. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <thrum/thrum.h>
#include <thrum/worker.h>
#include <unistd.h>

enum { WORKERS = 2, THREADS = 6, ROUNDS = 5, STATUS = 7, PATIENCE = 60 };

volatile int leave = 1;
static atomic_int arrived, generation, waiting;

__attribute__((noinline)) void marker(int *value);
__attribute__((noinline)) void marker(int *value) {
    ++*value;
}

__attribute__((noinline)) static void barrier(void) {
    int now = atomic_load(&generation);
    if (atomic_fetch_add(&arrived, 1) == THREADS - 1) {
        atomic_store(&arrived, 0);
        atomic_fetch_add(&generation, 1);
    } else {
        while (atomic_load(&generation) == now)
            ;
    }
}

__attribute__((noinline)) static void *compute(void *argument) {
    for (int i = 0; i < ROUNDS; i++)
        barrier();
    marker(argument);
    if (!leave && atomic_fetch_add(&waiting, 1) == THREADS - 1) {
        puts("program: all wait");
        fflush(stdout);
    }
    while (!leave)
        ;
    barrier();
    return NULL;
}

int main(int count, char **words) {
    struct thrum_config config = {.workers = WORKERS, .preempt = {.slice = 2000}};
    struct thrum_worker_counters counters;
    thrum_t threads[THREADS];
    int values[THREADS] = {0}, right = 0;
    unsigned long preemptions = 0;

    alarm(PATIENCE);
    if (count > 1 && strcmp(words[1], "wait") == 0) {
        leave = 0;
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    }
    if (thrum_init(&config) != 0)
        return 1;
    for (int i = 0; i < THREADS; i++)
        if (thrum_spawn(&threads[i], NULL, compute, &values[i]) != 0)
            return 1;
    for (int i = 0; i < THREADS; i++) {
        thrum_join(threads[i], NULL);
        right += values[i];
    }
    for (unsigned i = 0; i < WORKERS; i++)
        if (thrum_worker_get_counters(i, &counters) == 0)
            preemptions += counters.preemptions;
    if (thrum_fini() != 0 || right != THREADS || preemptions == 0)
        return 1;
    printf("program: %d threads have been there\n", right);
    return STATUS;
}
