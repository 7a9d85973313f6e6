// SPDX-License-Identifier: Apache-2.0
//
// Disease: an OpenMP loop with a critical section in each iteration. The number of threads comes from OMP_NUM_THREADS.
// Cure: a reduction.
#include <stdint.h>
#include <stdio.h>

#ifdef CURED
enum { ITEMS = 90000000 };
#else
enum { ITEMS = 15000000 };
#endif

static volatile uint64_t sum;

static uint64_t value(uint64_t state) {
    for (int i = 0; i < 20; i++)
        state = state * 6364136223846793005U + 1442695040888963407U;
    return state;
}

#ifdef CURED
static void sum_up(void) {
    uint64_t total = 0;
#pragma omp parallel for reduction(+ : total)
    for (int i = 0; i < ITEMS; i++)
        total += value((uint64_t)i);
    sum = total;
}
#else
static void sum_up(void) {
#pragma omp parallel for
    for (int i = 0; i < ITEMS; i++) {
        const uint64_t item = value((uint64_t)i);
#pragma omp critical /* HERE: hot-mutex */
        sum = sum + item; /* HERE: hot-mutex */
    }
}
#endif

int main(void) {
    sum_up();
    return sum == 1 ? 1 : 0;
}
