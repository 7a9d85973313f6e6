// SPDX-License-Identifier: Apache-2.0
/* What the operations of Argobots' interface cost on libthrum, in CPU time of the process: the best of several rounds. If
 * THRUM_BENCH_ARGOBOTS_PATH names a build of the original library (libabt.so.1), the same program measures that one, too, in turn with
 * ours: each round begins again with both.
 *
 *     build/release/bench/programs/abt
 *     THRUM_BENCH_ARGOBOTS_PATH=/opt/argobots/lib/libabt.so.1 build/release/bench/programs/abt */
#include <abt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 1000, BATCHES = 20, TURNS = 50000, ROUNDS = 5, OPERATIONS = 10 };

static ABT_pool pool;
static ABT_thread threads[THREADS];
static ABT_eventual there, back;
static ABT_mutex mutex;
static ABT_cond cond;
static int turn;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
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

static const struct operation {
    const char *name;
    void (*run)(void);
    double count;
} operations[OPERATIONS] = {
    {"create + free, 1000 at a time", create_many, (double)BATCHES *THREADS},
    {"create + free, one at a time", create_one, (double)BATCHES *THREADS},
    {"tasklet, create + free", create_tasklets, (double)BATCHES *THREADS},
    {"yield", yield, 2.0 * TURNS},
    {"yield_to", yield_to, 2.0 * TURNS},
    {"eventual, round trip", eventual, TURNS},
    {"condition, round trip", condition, TURNS},
    {"mutex, lock + unlock", lock, TURNS},
    {"create + free, stack of another size", other_stack, THREADS},
    {"likewise, 1000 at a time", many_other_stacks, THREADS},
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
        operations[i].run(); /* warm */
        double began = now();
        operations[i].run();
        printf("%f\n", (now() - began) / operations[i].count);
    }
    ABT_eventual_free(&there);
    ABT_eventual_free(&back);
    ABT_mutex_free(&mutex);
    ABT_cond_free(&cond);
    exit(ABT_finalize() != ABT_SUCCESS);
}

/* The least of what was measured so far. `library` is preloaded, unless it is NULL. */
static void run_child(const char *library, double *best) {
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
    double value;
    for (int i = 0; i < OPERATIONS && fscanf(file, "%lf", &value) == 1; i++)
        best[i] = best[i] == 0 || value < best[i] ? value : best[i];
    fclose(file);
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "abt: a measuring process failed\n");
        exit(EXIT_FAILURE);
    }
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "measure") == 0)
        measure();
    const char *original = getenv("THRUM_BENCH_ARGOBOTS_PATH");
    double ours[OPERATIONS] = {0}, theirs[OPERATIONS] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        run_child(NULL, ours);
        if (original != NULL)
            run_child(original, theirs);
    }
    printf("%-38s %10s%s\n", "CPU time, ns", "libthrum", original != NULL ? "  original" : "");
    for (int i = 0; i < OPERATIONS; i++) {
        printf("%-38s %10.1f", operations[i].name, ours[i]);
        if (original != NULL)
            printf("%10.1f", theirs[i]);
        putchar('\n');
    }
    return 0;
}
