// SPDX-License-Identifier: Apache-2.0
/* What the operations of Argobots' interface cost on libthrum: medians of several rounds, in CPU time of the process, or in time
 * where two streams take turns. If THRUM_BENCH_ARGOBOTS_PATH names a build of the original library (libabt.so.1), the same program
 * measures that one, too, in turn with ours: each round begins again with both. Each round also measures the operations of
 * <thrum/thrum.h> that do the same (native.c), for what the interface adds to them. With --check it ends with status 3 where a
 * ratio surely exceeds its limit.
 *
 *     build/release/bench/programs/abt
 *     THRUM_BENCH_ARGOBOTS_PATH=/opt/argobots/lib/libabt.so.1 build/release/bench/programs/abt --check */
#include <abt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "measure.h"

enum { FAR_TURNS = 50000, IDLE_MS = 50, ROUNDS = 9, OPERATIONS = 12 };

static ABT_pool pool, far_pool;
static ABT_thread threads[THREADS];
static ABT_eventual there, back;
static ABT_mutex mutex;
static ABT_cond cond;
static int turn;

static void nothing(void *arg) {
    (void)arg;
}

static void create_many(void) {
    for (int batch = 0; batch < BATCHES; batch++) {
        for (int i = 0; i < THREADS; i++)
            ABT_thread_create(pool, nothing, NULL, ABT_THREAD_ATTR_NULL, &threads[i]);
        for (int i = 0; i < THREADS; i++)
            ABT_thread_free(&threads[i]);
    }
}

static void create_one(void) {
    for (int i = 0; i < BATCHES * THREADS; i++) {
        ABT_thread_create(pool, nothing, NULL, ABT_THREAD_ATTR_NULL, &threads[0]);
        ABT_thread_free(&threads[0]);
    }
}

static void create_tasklets(void) {
    for (int batch = 0; batch < BATCHES; batch++) {
        for (int i = 0; i < THREADS; i++)
            ABT_task_create(pool, nothing, NULL, &threads[i]);
        for (int i = 0; i < THREADS; i++)
            ABT_task_free(&threads[i]);
    }
}

static void run_two(void (*one)(void *), void (*other)(void *)) {
    static int which[2] = {0, 1};
    ABT_thread_create(pool, one, &which[0], ABT_THREAD_ATTR_NULL, &threads[0]);
    ABT_thread_create(pool, other, &which[1], ABT_THREAD_ATTR_NULL, &threads[1]);
    ABT_thread_free(&threads[0]);
    ABT_thread_free(&threads[1]);
}

static void yields(void *arg) {
    for (int i = 0; i < TURNS; i++)
        ABT_thread_yield();
    (void)arg;
}

static void yield(void) {
    run_two(yields, yields);
}

static void yields_to(void *arg) {
    int other = 1 - *(int *)arg;
    for (int i = 0; i < TURNS; i++)
        ABT_thread_yield_to(threads[other]);
}

static void yield_to(void) {
    run_two(yields_to, yields_to);
}

static void sends(void *arg) {
    for (int i = 0; i < TURNS; i++) {
        ABT_eventual_set(there, NULL, 0);
        ABT_eventual_wait(back, NULL);
        ABT_eventual_reset(back);
    }
    (void)arg;
}

static void answers(void *arg) {
    for (int i = 0; i < TURNS; i++) {
        ABT_eventual_wait(there, NULL);
        ABT_eventual_reset(there);
        ABT_eventual_set(back, NULL, 0);
    }
    (void)arg;
}

static void eventual(void) {
    run_two(sends, answers);
}

static void takes_turns(void *arg) {
    int me = *(int *)arg;
    for (int i = 0; i < TURNS; i++) {
        ABT_mutex_lock(mutex);
        while (turn != me)
            ABT_cond_wait(cond, mutex);
        turn = !me;
        ABT_cond_signal(cond);
        ABT_mutex_unlock(mutex);
    }
}

static void condition(void) {
    turn = 0;
    run_two(takes_turns, takes_turns);
}

static void lock(void) {
    for (int i = 0; i < TURNS; i++) {
        ABT_mutex_lock(mutex);
        ABT_mutex_unlock(mutex);
    }
}

static void other_stacks(int at_a_time) {
    ABT_thread_attr attr;
    ABT_thread_attr_create(&attr);
    ABT_thread_attr_set_stacksize(attr, 256 * 1024);
    for (int batch = 0; batch < THREADS / at_a_time; batch++) {
        for (int i = 0; i < at_a_time; i++)
            ABT_thread_create(pool, nothing, NULL, attr, &threads[i]);
        for (int i = 0; i < at_a_time; i++)
            ABT_thread_free(&threads[i]);
    }
    ABT_thread_attr_free(&attr);
}

static void other_stack(void) {
    other_stacks(1);
}

static void many_other_stacks(void) {
    other_stacks(THREADS);
}

static void calls(void *arg) {
    for (int i = 0; i < FAR_TURNS; i++) {
        ABT_eventual_set(there, NULL, 0);
        ABT_eventual_wait(back, NULL);
        ABT_eventual_reset(back);
    }
    (void)arg;
}

static void responds(void *arg) {
    for (int i = 0; i < FAR_TURNS; i++) {
        ABT_eventual_wait(there, NULL);
        ABT_eventual_reset(there);
        ABT_eventual_set(back, NULL, 0);
    }
    (void)arg;
}

/* Each stream has one thread, and is idle while that waits. */
static void far_eventual(void) {
    ABT_thread_create(pool, calls, NULL, ABT_THREAD_ATTR_NULL, &threads[0]);
    ABT_thread_create(far_pool, responds, NULL, ABT_THREAD_ATTR_NULL, &threads[1]);
    ABT_thread_free(&threads[0]);
    ABT_thread_free(&threads[1]);
}

/* The other stream is. */
static void idle(void) {
    struct timespec time = {0, IDLE_MS * 1000000L};
    nanosleep(&time, NULL);
}

#define CPU         CLOCK_PROCESS_CPUTIME_ID
#define LAYER_LIMIT 1.08 /* of what an operation takes by the interface and natively */

enum streams { ONE_STREAM, TWO_STREAMS };

/* `limit`: of the ratio, ours / the original's; 0: none. */
static const struct operation {
    const char *name;
    void (*run)(void);
    double count, limit;
    enum streams streams;
    clockid_t clock;
} operations[OPERATIONS] = {
    {"create + free, 1000 at a time", create_many, (double)BATCHES *THREADS, 0.95, ONE_STREAM, CPU},
    {"create + free, one at a time", create_one, (double)BATCHES *THREADS, 0.95, ONE_STREAM, CPU},
    {"tasklet, create + free", create_tasklets, (double)BATCHES *THREADS, 1, ONE_STREAM, CPU},
    {"yield", yield, 2.0 * TURNS, 0.8, ONE_STREAM, CPU},
    {"yield_to", yield_to, 2.0 * TURNS, 0.8, ONE_STREAM, CPU},
    {"eventual, round trip", eventual, TURNS, 0.85, ONE_STREAM, CPU},
    {"condition, round trip", condition, TURNS, 0.85, ONE_STREAM, CPU},
    {"mutex, lock + unlock", lock, TURNS, 0.9, ONE_STREAM, CPU},
    {"create + free, stack of another size", other_stack, THREADS, 0, ONE_STREAM, CPU},
    {"likewise, 1000 at a time", many_other_stacks, THREADS, 0.1, ONE_STREAM, CPU},
    {"eventual, two idle streams (time)", far_eventual, FAR_TURNS, 1, TWO_STREAMS, CLOCK_MONOTONIC},
    {"an idle stream, a microsecond", idle, IDLE_MS * 1e3, 0, TWO_STREAMS, CPU},
};

/* In a process of its own: a line for each operation, on standard output, with its name. */
static void measure(void) {
    ABT_xstream stream;
    if (ABT_init(0, NULL) != ABT_SUCCESS || ABT_xstream_self(&stream) != ABT_SUCCESS ||
        ABT_xstream_get_main_pools(stream, 1, &pool) != ABT_SUCCESS)
        exit(EXIT_FAILURE);
    ABT_eventual_create(0, &there);
    ABT_eventual_create(0, &back);
    ABT_mutex_create(&mutex);
    ABT_cond_create(&cond);
    for (int i = 0; i < OPERATIONS; i++) {
        const struct operation *operation = &operations[i];
        ABT_xstream other = ABT_XSTREAM_NULL;
        if (operation->streams == TWO_STREAMS &&
            (ABT_xstream_create(ABT_SCHED_NULL, &other) != ABT_SUCCESS ||
             ABT_xstream_get_main_pools(other, 1, &far_pool) != ABT_SUCCESS))
            exit(EXIT_FAILURE);
        printf("%f %s\n", ns_each(operation->run, operation->count, operation->clock), operation->name);
        if (other != ABT_XSTREAM_NULL)
            ABT_xstream_free(&other);
    }
    ABT_eventual_free(&there);
    ABT_eventual_free(&back);
    ABT_mutex_free(&mutex);
    ABT_cond_free(&cond);
    exit(ABT_finalize() != ABT_SUCCESS);
}

/* Of each operation, in the order of the rounds; 0: it was not measured. */
struct results {
    double ns[OPERATIONS][ROUNDS];
};

/* What is measured. */
struct subject {
    char program[PATH_MAX];
    const char *preloaded; /* NULL: nothing */
    struct results results;
};

static int operation_named(const char *name) {
    for (int i = 0; i < OPERATIONS; i++)
        if (strcmp(operations[i].name, name) == 0)
            return i;
    fprintf(stderr, "abt: there is no operation '%s'\n", name);
    exit(EXIT_FAILURE);
}

static void read_results(int from, struct results *results, int round) {
    FILE *file = fdopen(from, "r");
    char name[64];
    double ns;
    while (file != NULL && fscanf(file, "%lf %63[^\n]", &ns, name) == 2)
        results->ns[operation_named(name)][round] = ns;
    if (file != NULL)
        fclose(file);
}

static void run_child(struct subject *subject, int round) {
    int ends[2];
    if (pipe(ends) != 0)
        exit(EXIT_FAILURE);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        if (subject->preloaded != NULL)
            setenv("LD_PRELOAD", subject->preloaded, 1);
        execl(subject->program, subject->program, "measure", (char *)NULL);
        _exit(EXIT_FAILURE);
    }
    close(ends[1]);
    read_results(ends[0], &subject->results, round);
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "abt: %s, which measures, failed\n", subject->program);
        exit(EXIT_FAILURE);
    }
}

static int compare(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* Of the rounds: the median, and the interval in which it is with 96 % (Binomial(9, 1/2)). */
struct spread {
    double low, median, high;
};

static struct spread spread_of(const double *values) {
    double sorted[ROUNDS];
    memcpy(sorted, values, sizeof sorted);
    qsort(sorted, ROUNDS, sizeof *sorted, compare);
    return (struct spread){sorted[1], sorted[ROUNDS / 2], sorted[ROUNDS - 2]};
}

/* True: the ratio surely exceeds its limit. */
static bool print_ratio(const double *here, const double *there, double limit) {
    double ratios[ROUNDS];
    for (int round = 0; round < ROUNDS; round++)
        ratios[round] = here[round] / there[round];
    const struct spread ratio = spread_of(ratios);
    const char *verdict = ratio.high <= limit ? "kept" : ratio.low > limit ? "MISSED" : "undecided";
    printf("%10.1f %7.2f [%.2f, %.2f]", spread_of(there).median, ratio.median, ratio.low, ratio.high);
    if (limit != 0)
        printf("%7.2f  %s", limit, verdict);
    return limit != 0 && ratio.low > limit;
}

/* How many ratios exceed their limits: those that the operations have, or this one unless it is 0. */
static int print(const struct results *ours, const char *name, const struct results *theirs, double limit) {
    int missed = 0;
    printf("%-38s %10s%10s   ratio [96 %%]       limit\n", "ns, of CPU time unless it says time", "libthrum",
           name);
    for (int i = 0; i < OPERATIONS; i++) {
        if (theirs->ns[i][0] == 0)
            continue;
        printf("%-38s %10.1f", operations[i].name, spread_of(ours->ns[i]).median);
        missed += print_ratio(ours->ns[i], theirs->ns[i], limit != 0 ? limit : operations[i].limit);
        putchar('\n');
    }
    return missed;
}

int main(int argc, char **argv) {
    static struct subject ours, native, original;
    enum { MISSED = 3 };
    if (argc == 2 && strcmp(argv[1], "measure") == 0)
        measure();
    bool checks = argc == 2 && strcmp(argv[1], "--check") == 0;
    if (argc > 1 && !checks) {
        fprintf(stderr, "abt: takes --check alone\n");
        return 2;
    }
    ssize_t length = readlink("/proc/self/exe", ours.program, sizeof ours.program - sizeof "-native");
    if (length < 0) {
        perror("abt: /proc/self/exe");
        return EXIT_FAILURE;
    }
    memcpy(original.program, ours.program, sizeof ours.program);
    snprintf(native.program, sizeof native.program, "%.*s-native", (int)length, ours.program);
    original.preloaded = getenv("THRUM_BENCH_ARGOBOTS_PATH");
    for (int round = 0; round < ROUNDS; round++) {
        run_child(&ours, round);
        run_child(&native, round);
        if (original.preloaded != NULL)
            run_child(&original, round);
    }
    int missed = print(&ours.results, "native", &native.results, LAYER_LIMIT);
    putchar('\n');
    if (original.preloaded != NULL)
        missed += print(&ours.results, "original", &original.results, 0);
    else
        printf("THRUM_BENCH_ARGOBOTS_PATH names no build of Argobots to compare with\n");
    return checks && missed > 0 ? MISSED : EXIT_SUCCESS;
}
