// SPDX-License-Identifier: Apache-2.0
// A library that waits by spinning, on user-level threads. Teams of four execute its kernels and meet at a barrier that
// only spins, as in libraries that assume a CPU for each thread. Here two workers run them: a spinning member occupies its
// worker, and the members that it waits for would never run. Preemption gives them their turn; the library does not need
// to know. docs/studies/cholesky.md measures the same with BLAS.
// cc cholesky.c -lm $(pkg-config --cflags --libs thrum)
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <thrum/thrum.h>
#include <thrum/worker.h>

// --- the library ------------------------------------------------------------------------------------------

enum { TILE = 32, MEMBERS = 4 };
typedef double tile[TILE][TILE];

struct barrier {
    atomic_uint arrived, round;
};

static void barrier_wait(struct barrier *barrier) {
    unsigned round = atomic_load(&barrier->round);
    if (atomic_fetch_add(&barrier->arrived, 1) + 1 == MEMBERS) {
        atomic_store(&barrier->arrived, 0);
        atomic_store(&barrier->round, round + 1);
    } else {
        while (atomic_load(&barrier->round) == round) {
        }
    }
}

// One call: c -= a * b^T, or with `solve` c = c * b^-T where b is a lower triangle, or the same with b == c: then that is
// factorised first.
struct call {
    double (*a)[TILE], (*b)[TILE], (*c)[TILE];
    int solve;
    struct barrier barrier;
};

struct member {
    struct call *call;
    int number;
};

static void factorise(tile c) {
    for (int k = 0; k < TILE; k++)
        for (int i = k; i < TILE; i++) {
            double rest = c[i][k];
            for (int j = 0; j < k; j++)
                rest -= c[i][j] * c[k][j];
            c[i][k] = i == k ? sqrt(rest) : rest / c[k][k];
        }
}

static void *work(void *arg) { // a member does every fourth row
    struct member *member = arg;
    struct call *call = member->call;
    if (call->b == call->c && member->number == 0)
        factorise(call->c);
    for (int i = member->number; call->b != call->c && i < TILE; i += MEMBERS)
        for (int j = 0; j < TILE; j++) {
            int depth = call->solve ? j : TILE;
            for (int k = 0; k < depth; k++)
                call->c[i][j] -= (call->solve ? call->c : call->a)[i][k] * call->b[j][k];
            if (call->solve)
                call->c[i][j] /= call->b[j][j];
        }
    barrier_wait(&call->barrier);
    return NULL;
}

static void check(int error) {
    if (error != 0)
        exit(1);
}

// Makes its team for each call: the caller is one of them.
static void kernel(tile a, tile b, tile c, int solve) {
    struct call call = {.a = a, .b = b, .c = c, .solve = solve};
    struct member members[MEMBERS];
    thrum_t threads[MEMBERS];
    for (int i = 0; i < MEMBERS; i++)
        members[i] = (struct member){&call, i};
    for (int i = 1; i < MEMBERS; i++)
        check(thrum_spawn(&threads[i], NULL, work, &members[i]));
    work(&members[0]);
    for (int i = 1; i < MEMBERS; i++)
        check(thrum_join(threads[i], NULL));
}

// --- the program: A = L * L^T, tile by tile ---------------------------------------------------------------

enum { TILES = 4, SIZE = TILES * TILE };
static tile matrix[TILES][TILES]; // its lower triangle
static thrum_latch_t done[TILES][TILES];

// One task for each tile: it waits for those that it needs.
static void *compute(void *place) {
    int i = (int)((long)place / TILES), j = (int)((long)place % TILES);
    for (int k = 0; k < j; k++) {
        thrum_latch_wait(&done[i][k]);
        thrum_latch_wait(&done[j][k]);
        kernel(matrix[i][k], matrix[j][k], matrix[i][j], 0);
    }
    if (i != j)
        thrum_latch_wait(&done[j][j]);
    kernel(NULL, matrix[j][j], matrix[i][j], 1);
    check(thrum_latch_count_down(&done[i][j], 1));
    return NULL;
}

static double entry(int row, int column) { // of A
    return row == column ? SIZE : 1 / (1.0 + abs(row - column));
}

static double error(void) { // the largest difference between an entry of A and of L * L^T
    double largest = 0;
    for (int row = 0; row < SIZE; row++)
        for (int column = 0; column <= row; column++) {
            double sum = 0;
            for (int k = 0; k <= column; k++)
                sum += matrix[row / TILE][k / TILE][row % TILE][k % TILE] *
                       matrix[column / TILE][k / TILE][column % TILE][k % TILE];
            largest = fmax(largest, fabs(sum - entry(row, column)));
        }
    return largest;
}

int main(void) {
    // KLT is safe whatever the library does; THRUM_PREEMPT_LEND costs less, and is for nearly all of them.
    struct thrum_config config = {.workers = 2, .preempt = {.mode = THRUM_PREEMPT_KLT, .slice = 1000}};
    thrum_t tasks[TILES][TILES];
    check(thrum_init(&config));
    for (int row = 0; row < SIZE; row++)
        for (int column = 0; column < SIZE; column++)
            matrix[row / TILE][column / TILE][row % TILE][column % TILE] = entry(row, column);
    for (int i = 0; i < TILES; i++)
        for (int j = 0; j <= i; j++)
            thrum_latch_init(&done[i][j], 1);
    for (long i = 0; i < TILES; i++)
        for (long j = 0; j <= i; j++)
            check(thrum_spawn(&tasks[i][j], NULL, compute, (void *)(i * TILES + j)));
    for (int i = 0; i < TILES; i++)
        for (int j = 0; j <= i; j++)
            check(thrum_join(tasks[i][j], NULL));

    unsigned long long preemptions = 0;
    for (unsigned i = 0; i < config.workers; i++) {
        struct thrum_worker_counters counters;
        check(thrum_worker_get_counters(i, &counters));
        preemptions += counters.preemptions;
    }
    printf("%d x %d: the error is %s; %llu preemptions\n", SIZE, SIZE, error() < 1e-9 ? "small" : "LARGE",
           preemptions);
    return thrum_fini();
}
