// SPDX-License-Identifier: Apache-2.0
/* A simulation that is analysed while it runs. A step takes some microseconds, then the simulation waits for a
 * millisecond, like a part of a larger one that exchanges data with its neighbours. Every 20 steps a thread of lower
 * priority gets a copy to analyse, which takes longer than 20 steps do. It should run while the simulation waits, and no
 * longer: when the simulation becomes runnable it preempts the analysis.
 *
 *     insitu                one worker; the analysis is interrupted
 *     insitu cooperative    it is not: then the simulation waits until an analysis is over
 *
 * docs/studies/insitu.md measures a larger one. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <thrum/pool.h>
#include <thrum/thrum.h>

enum { CELLS = 2000, WAVES = 500, STEPS = 200, EVERY = 20, SNAPSHOTS = STEPS / EVERY };
enum { FIRST, SECOND, LEVELS }; /* of priority: the simulation, the analysis */

static thrum_pool_t pools[LEVELS];

static void check(int error) {
    if (error != 0) {
        fprintf(stderr, "%s\n", strerror(error));
        exit(1);
    }
}

static thrum_t spawn(int level, void *(*fn)(void *), void *arg) {
    thrum_attr_t attr;
    thrum_t thread;
    thrum_attr_init(&attr);
    thrum_attr_set_pool(&attr, pools[level]);
    check(thrum_spawn(&thread, &attr, fn, arg));
    return thread;
}

/* --- the analysis: how much of each wave there is in it -------------------------------------------------------- */

struct snapshot {
    double heat[CELLS], strength[WAVES];
    thrum_t thread;
};

static void *analyse(void *arg) {
    struct snapshot *snapshot = arg;
    for (int wave = 0; wave < WAVES; wave++) {
        double sum = 0;
        for (int i = 0; i < CELLS; i++)
            sum += snapshot->heat[i] * cos(3.14159265358979 * wave * (i + 0.5) / CELLS);
        snapshot->strength[wave] = sum / CELLS;
    }
    return NULL;
}

/* --- the simulation: heat that spreads in a rod, of which none is lost ------------------------------------------- */

static struct snapshot snapshots[SNAPSHOTS];
static uint64_t latest; /* that it came back from its neighbours, after its time, in all; ns */

static void step(double heat[CELLS]) {
    static double flow[CELLS + 1]; /* from the cell before; none at the ends */
    for (int i = 1; i < CELLS; i++)
        flow[i] = (heat[i - 1] - heat[i]) / 4;
    for (int i = 0; i < CELLS; i++)
        heat[i] += flow[i] - flow[i + 1];
}

static void *simulate(void *unused) {
    static double heat[CELLS] = {CELLS}; /* all in the first cell */
    for (int i = 1; i <= STEPS; i++) {
        step(heat);
        uint64_t next = thrum_now() + THRUM_MS;
        thrum_sleep_until(next);
        latest += thrum_now() - next;
        if (i % EVERY == 0) {
            struct snapshot *snapshot = &snapshots[i / EVERY - 1];
            memcpy(snapshot->heat, heat, sizeof heat);
            snapshot->thread = spawn(SECOND, analyse, snapshot);
        }
    }
    return unused;
}

int main(int argc, char **argv) {
    bool cooperative = argc > 1 && strcmp(argv[1], "cooperative") == 0;
    struct thrum_config config = {.workers = 2}; /* this thread's, which waits, and another */
    thrum_sched_t sched;
    config.preempt.mode = cooperative ? THRUM_PREEMPT_NONE : THRUM_PREEMPT_LEND;
    check(thrum_init(&config));
    for (int level = 0; level < LEVELS; level++)
        check(thrum_pool_create(&pools[level], THRUM_POOL_FIFO));
    check(thrum_sched_create(&sched, THRUM_SCHED_FIRST, pools, LEVELS));
    check(thrum_worker_set_sched(1, sched));

    check(thrum_join(spawn(FIRST, simulate, NULL), NULL));
    double lost = 0;
    for (int i = 0; i < SNAPSHOTS; i++) {
        check(thrum_join(snapshots[i].thread, NULL));
        lost = fmax(lost, fabs(snapshots[i].strength[0] - 1)); /* wave 0 is the mean */
    }
    printf("%d steps and %d snapshots: heat is %s; the simulation came back %.3f ms late in the mean\n",
           STEPS, SNAPSHOTS, lost < 1e-12 ? "kept" : "LOST", (double)latest / STEPS / (double)THRUM_MS);
    return thrum_fini();
}
