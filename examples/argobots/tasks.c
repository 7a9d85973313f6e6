// SPDX-License-Identifier: Apache-2.0
/* How long do tasks take on a number of streams that share one pool? Written against Argobots' interface, for any build of it.
 * docs/studies/casestudy.md asks the same of libthrum's own threads.
 *
 *   tasks STREAMS TASKS sleep MS     each task sleeps in the runtime; other tasks run meanwhile
 *   tasks STREAMS TASKS block MS     each task sleeps in the kernel, and so does its stream
 *   tasks STREAMS TASKS compute N    each task runs N steps of a loop
 *
 * Argobots itself has no sleep: there the tasks yield until their time has come.
 *
 * Build: cc tasks.c $(pkg-config --cflags --libs argobots) */
#include <abt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long amount; /* milliseconds, or steps */
static int done;    /* atomic */

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        int error = (call);                                                                                  \
        if (error != ABT_SUCCESS) {                                                                          \
            fprintf(stderr, "%s: error %d\n", #call, error);                                                 \
            exit(EXIT_FAILURE);                                                                              \
        }                                                                                                    \
    } while (0)

static void count(void) {
    __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
}

static void sleeps(void *unused) {
    (void)unused;
#ifdef ABT_THRUM
    CHECK(thrum_abt_sleep((uint64_t)amount * 1000000));
#else
    double end = ABT_get_wtime() + (double)amount / 1e3;
    while (ABT_get_wtime() < end)
        CHECK(ABT_thread_yield());
#endif
    count();
}

static void blocks(void *unused) {
    (void)unused;
    struct timespec time = {.tv_sec = amount / 1000, .tv_nsec = amount % 1000 * 1000000};
    nanosleep(&time, NULL);
    count();
}

static void computes(void *unused) {
    (void)unused;
    unsigned x = 1;
    for (long i = 0; i < amount; i++) {
        x = x * 1664525 + 1013904223;
        __asm__ volatile("" : "+r"(x)); /* else the compiler sees that no step is needed */
    }
    count();
}

static void (*task_named(const char *name))(void *) {
    return strcmp(name, "sleep") == 0     ? sleeps
           : strcmp(name, "block") == 0   ? blocks
           : strcmp(name, "compute") == 0 ? computes
                                          : NULL;
}

static void run(int stream_count, int task_count, void (*task)(void *)) {
    ABT_xstream *streams = calloc((size_t)stream_count, sizeof *streams);
    ABT_thread *tasks = calloc((size_t)task_count, sizeof *tasks);
    ABT_pool pool;
    if (streams == NULL || tasks == NULL) {
        fprintf(stderr, "tasks: no memory for %d streams and %d tasks\n", stream_count, task_count);
        exit(EXIT_FAILURE);
    }
    CHECK(ABT_pool_create_basic(ABT_POOL_FIFO_WAIT, ABT_POOL_ACCESS_MPMC, ABT_TRUE, &pool));
    for (int i = 0; i < stream_count; i++)
        CHECK(ABT_xstream_create_basic(ABT_SCHED_BASIC_WAIT, 1, &pool, ABT_SCHED_CONFIG_NULL, &streams[i]));
    for (int i = 0; i < task_count; i++)
        CHECK(ABT_thread_create(pool, task, NULL, ABT_THREAD_ATTR_NULL, &tasks[i]));
    CHECK(ABT_thread_free_many(task_count, tasks));
    for (int i = 0; i < stream_count; i++)
        CHECK(ABT_xstream_free(&streams[i]));
    free(tasks);
    free(streams);
}

int main(int argc, char **argv) {
    int stream_count = argc == 5 ? atoi(argv[1]) : 0, task_count = argc == 5 ? atoi(argv[2]) : 0;
    void (*task)(void *) = argc == 5 ? task_named(argv[3]) : NULL;
    if (stream_count <= 0 || task_count <= 0 || task == NULL || (amount = atol(argv[4])) < 0) {
        fprintf(stderr, "Usage: tasks STREAMS TASKS sleep|block|compute AMOUNT\n");
        return EXIT_FAILURE;
    }
    CHECK(ABT_init(argc, argv));
    double start = ABT_get_wtime();
    run(stream_count, task_count, task);
    double seconds = ABT_get_wtime() - start;
    CHECK(ABT_finalize());
    printf("%d tasks on %d streams: %d done in %.4f s, %.4f s of CPU time\n", task_count, stream_count, done,
           seconds, (double)clock() / CLOCKS_PER_SEC);
    return 0;
}
