// SPDX-License-Identifier: Apache-2.0
/* Short requests beside long computations on one stream, written against Argobots' interface with thrum's extensions. Without
 * preemption the first request is answered when the computations before it have ended; with it after a slice or so of each.
 *
 *   slices [none]     none: without preemption
 *
 * The computations are in a pool whose threads are preempted. The requests are in one whose threads are not, and which the scheduler
 * empties first.
 *
 * Build: cc slices.c $(pkg-config --cflags --libs argobots) */
#include <abt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPUTATIONS = 4, REQUESTS = 50, SLICE = 500 /* us */ };
static const double compute_seconds = 0.05, period = 0.001;

static ABT_pool pools[2]; /* requests; computations */
static double latest;     /* of the answers, in seconds after its request */
static int answered;
static int done; /* atomic, as the computations run in turn */

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        int error = (call);                                                                                  \
        if (error != ABT_SUCCESS) {                                                                          \
            fprintf(stderr, "%s: error %d\n", #call, error);                                                 \
            exit(EXIT_FAILURE);                                                                              \
        }                                                                                                    \
    } while (0)

static void compute(void *unused) {
    (void)unused;
    double end = ABT_get_wtime() + compute_seconds;
    while (ABT_get_wtime() < end) /* never waits */
        ;
    __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
}

/* Answers each request when its time has come, or later. */
static void serve(void *unused) {
    (void)unused;
    double due = ABT_get_wtime();
    while (answered < REQUESTS) {
        due += period;
        double wait = due - ABT_get_wtime();
        if (wait > 0)
            CHECK(thrum_abt_sleep((uint64_t)(wait * 1e9)));
        double late = ABT_get_wtime() - due;
        latest = late > latest ? late : latest;
        answered++;
    }
}

int main(int argc, char **argv) {
    ABT_xstream stream;
    ABT_thread server;
    int preempts = argc < 2 || strcmp(argv[1], "none") != 0;
    CHECK(thrum_abt_set_preempt(preempts ? THRUM_ABT_PREEMPT_DEFAULT : THRUM_ABT_PREEMPT_NONE, SLICE));
    CHECK(ABT_init(argc, argv));
    for (int i = 0; i < 2; i++)
        CHECK(ABT_pool_create_basic(ABT_POOL_FIFO, ABT_POOL_ACCESS_MPMC, ABT_TRUE, &pools[i]));
    if (preempts)
        CHECK(thrum_abt_pool_set_preempt(pools[1], THRUM_ABT_PREEMPT_LEND, 0));
    CHECK(ABT_xstream_create_basic(ABT_SCHED_PRIO, 2, pools, ABT_SCHED_CONFIG_NULL, &stream));
    CHECK(ABT_thread_create(pools[0], serve, NULL, ABT_THREAD_ATTR_NULL, &server));
    for (int i = 0; i < COMPUTATIONS; i++)
        CHECK(ABT_thread_create(pools[1], compute, NULL, ABT_THREAD_ATTR_NULL, NULL));
    CHECK(ABT_thread_free(&server));
    CHECK(ABT_xstream_free(&stream));
    CHECK(ABT_finalize());
    printf("%d requests answered, the latest %.1f ms late; %d computations\n", answered, latest * 1e3, done);
    return 0;
}
