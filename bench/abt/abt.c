// SPDX-License-Identifier: Apache-2.0
/* What the operations of Argobots' interface cost on libthrum: medians of several rounds, in CPU time of the process, or in time
 * where two streams take turns. If THRUM_BENCH_ARGOBOTS_PATH names a build of the original library (libabt.so.1), the same program
 * measures that one, too, in turn with ours: each round begins again with both. With --check it ends with status 3 where a ratio
 * surely exceeds its limit.
 *
 *     build/release/bench/programs/abt
 *     THRUM_BENCH_ARGOBOTS_PATH=/opt/argobots/lib/libabt.so.1 build/release/bench/programs/abt --check */
#include <abt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    THREADS = 1000,
    BATCHES = 20,
    TURNS = 50000,
    FAR_TURNS = 10000,
    IDLE_MS = 50,
    ROUNDS = 9,
    OPERATIONS = 12
};

static ABT_pool pool, far_pool;
static ABT_thread threads[THREADS];
static ABT_eventual there, back;
static ABT_mutex mutex;
static ABT_cond cond;
static int turn;

static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

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

#define CPU CLOCK_PROCESS_CPUTIME_ID

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

/* In a process of its own: one number for each operation, on standard output. */
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
        operation->run(); /* warm */
        double began = now(operation->clock);
        operation->run();
        printf("%f\n", (now(operation->clock) - began) / operation->count);
        if (other != ABT_XSTREAM_NULL)
            ABT_xstream_free(&other);
    }
    ABT_eventual_free(&there);
    ABT_eventual_free(&back);
    ABT_mutex_free(&mutex);
    ABT_cond_free(&cond);
    exit(ABT_finalize() != ABT_SUCCESS);
}

/* Of each operation, in the order of the rounds. */
struct results {
    double ns[OPERATIONS][ROUNDS];
};

/* `library` is preloaded, unless it is NULL. */
static void run_child(const char *library, struct results *results, int round) {
    int ends[2];
    if (pipe(ends) != 0)
        exit(EXIT_FAILURE);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        if (library != NULL)
            setenv("LD_PRELOAD", library, 1);
        execl("/proc/self/exe", "abt", "measure", (char *)NULL);
        _exit(EXIT_FAILURE);
    }
    close(ends[1]);
    FILE *file = fdopen(ends[0], "r");
    int count = 0;
    while (file != NULL && count < OPERATIONS && fscanf(file, "%lf", &results->ns[count][round]) == 1)
        count++;
    if (file != NULL)
        fclose(file);
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || count != OPERATIONS) {
        fprintf(stderr, "abt: a measuring process failed\n");
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

/* How many ratios exceed their limits. */
static int print(const struct results *ours, const struct results *theirs) {
    int missed = 0;
    printf("%-38s %10s%s\n", "ns, of CPU time unless it says time", "libthrum",
           theirs != NULL ? "  original   ratio [96 %]       limit" : "");
    for (int i = 0; i < OPERATIONS; i++) {
        printf("%-38s %10.1f", operations[i].name, spread_of(ours->ns[i]).median);
        if (theirs != NULL)
            missed += print_ratio(ours->ns[i], theirs->ns[i], operations[i].limit);
        putchar('\n');
    }
    return missed;
}

int main(int argc, char **argv) {
    static struct results ours, theirs;
    enum { MISSED = 3 };
    if (argc == 2 && strcmp(argv[1], "measure") == 0)
        measure();
    bool checks = argc == 2 && strcmp(argv[1], "--check") == 0;
    if (argc > 1 && !checks) {
        fprintf(stderr, "abt: takes --check alone\n");
        return 2;
    }
    const char *original = getenv("THRUM_BENCH_ARGOBOTS_PATH");
    if (checks && original == NULL) {
        fprintf(
            stderr,
            "abt: --check compares with the library that THRUM_BENCH_ARGOBOTS_PATH names; it names none\n");
        return 2;
    }
    for (int round = 0; round < ROUNDS; round++) {
        run_child(NULL, &ours, round);
        if (original != NULL)
            run_child(original, &theirs, round);
    }
    int missed = print(&ours, original != NULL ? &theirs : NULL);
    return checks && missed > 0 ? MISSED : EXIT_SUCCESS;
}
