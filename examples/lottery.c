// SPDX-License-Identifier: Apache-2.0
// A scheduler of one's own: of two pools the first is drawn three times out of four, so that its threads get three
// quarters of the turns without starving the others (Waldspurger and Weihl, "Lottery Scheduling", OSDI 1994).
// cc lottery.c $(pkg-config --cflags --libs thrum)
#include <stdio.h>
#include <stdlib.h>
#include <thrum/pool.h>
#include <thrum/thrum.h>

static void lottery(thrum_sched_t sched, void *unused) {
    unsigned seed = 1;
    (void)unused;
    while (!thrum_sched_stopping(sched)) {
        unsigned drawn = rand_r(&seed) % 4 == 0;
        thrum_t thread = thrum_pool_pop(thrum_sched_pool(sched, drawn));
        if (thread == NULL)
            thread = thrum_pool_pop(thrum_sched_pool(sched, 1 - drawn));
        if (thread != NULL)
            thrum_run(thread);
        else
            thrum_sched_idle(sched);
    }
}

static int turns[2], over;

static void *take_turns(void *which) {
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        turns[(long)which]++;
        if (turns[0] + turns[1] >= 100000)
            __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
        thrum_yield();
    }
    return NULL;
}

int main(void) {
    thrum_pool_t pools[2];
    thrum_sched_t sched;
    thrum_t threads[2];
    thrum_attr_t attr;
    struct thrum_config config = {.workers = 2};
    if (thrum_init(&config) != 0 || thrum_pool_create(&pools[0], THRUM_POOL_FIFO) != 0 ||
        thrum_pool_create(&pools[1], THRUM_POOL_FIFO) != 0 ||
        thrum_sched_create_user(&sched, lottery, NULL, pools, 2) != 0)
        return 1;
    thrum_attr_init(&attr);
    for (long i = 0; i < 2; i++) {
        thrum_attr_set_pool(&attr, pools[i]);
        if (thrum_spawn(&threads[i], &attr, take_turns, (void *)i) != 0)
            return 1;
    }
    thrum_worker_set_sched(1, sched);
    for (int i = 0; i < 2; i++)
        thrum_join(threads[i], NULL);
    printf("turns: %.0f %% and %.0f %%\n", 100.0 * turns[0] / (turns[0] + turns[1]),
           100.0 * turns[1] / (turns[0] + turns[1]));
    return thrum_fini();
}
