// SPDX-License-Identifier: Apache-2.0
/* An in-situ analysis in miniature, written against Argobots' interface: two pools that all streams share. Compute tasks go into the
 * first, which every scheduler empties before it looks into the second; there wait tasks that mostly sleep, as those do that write
 * results. Sleeping costs no stream: all of them sleep at the same time.
 *
 * Build: cc analysis.c $(pkg-config --cflags --libs argobots) */
#include <abt.h>
#include <stdio.h>
#include <stdlib.h>

enum { STREAMS = 3, STEPS = 20, WRITERS = 200, CELLS = 20000 };

static ABT_pool pools[2]; /* computing; writing */
static double sums[STEPS];
static int written; /* atomic */

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        int error = (call);                                                                                  \
        if (error != ABT_SUCCESS) {                                                                          \
            fprintf(stderr, "%s: error %d\n", #call, error);                                                 \
            exit(EXIT_FAILURE);                                                                              \
        }                                                                                                    \
    } while (0)

static void write_result(void *arg) {
    (void)arg;
#ifdef ABT_THRUM
    CHECK(thrum_abt_sleep(20000000)); /* a slow disk */
#endif
    __atomic_fetch_add(&written, 1, __ATOMIC_RELAXED);
}

static void compute(void *arg) {
    double *sum = arg;
    for (int i = 1; i <= CELLS; i++) {
        *sum += 1.0 / i;
        if (i % 5000 == 0)
            CHECK(ABT_thread_yield());
    }
    for (int i = 0; i < WRITERS / STEPS; i++)
        CHECK(ABT_thread_create(pools[1], write_result, NULL, ABT_THREAD_ATTR_NULL, NULL));
}

int main(int argc, char **argv) {
    ABT_xstream streams[STREAMS];
    ABT_thread threads[STEPS];
    CHECK(ABT_init(argc, argv));
    for (int i = 0; i < 2; i++)
        CHECK(ABT_pool_create_basic(ABT_POOL_FIFO, ABT_POOL_ACCESS_MPMC, ABT_TRUE, &pools[i]));
    CHECK(ABT_xstream_self(&streams[0]));
    CHECK(ABT_xstream_set_main_sched_basic(streams[0], ABT_SCHED_PRIO, 2, pools));
    for (int i = 1; i < STREAMS; i++)
        CHECK(ABT_xstream_create_basic(ABT_SCHED_PRIO, 2, pools, ABT_SCHED_CONFIG_NULL, &streams[i]));

    double started = ABT_get_wtime();
    for (int i = 0; i < STEPS; i++)
        CHECK(ABT_thread_create(pools[0], compute, &sums[i], ABT_THREAD_ATTR_NULL, &threads[i]));
    CHECK(ABT_thread_free_many(STEPS, threads));
    while (__atomic_load_n(&written, __ATOMIC_RELAXED) < WRITERS)
        CHECK(thrum_abt_sleep(1000000));
    double seconds = ABT_get_wtime() - started;

    for (int i = 1; i < STREAMS; i++)
        CHECK(ABT_xstream_free(&streams[i]));
    CHECK(ABT_finalize());
    printf("%d steps, sum %.3f; %d results were written in %.3f s\n", STEPS, sums[STEPS - 1], written,
           seconds);
    return 0;
}
