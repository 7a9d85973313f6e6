// SPDX-License-Identifier: Apache-2.0
//
// Disease: a barrier behind each step, and steps in which one thread has something to do: the others spin at the barrier,
// for libgomp lets threads sleep only when they have waited for some milliseconds. The number of threads comes from
// OMP_NUM_THREADS.
// Cure: all have something to do in each step, and meet once in five hundred of them.
#include <omp.h>
#include <stdint.h>

enum { STEPS = 15000, WORK = 60000, SELDOM = 500 };

static volatile uint64_t sum;

static uint64_t chew(uint64_t state, long count) {
    for (long i = 0; i < count; i++)
        state = state * 6364136223846793005U + 1442695040888963407U;
    return state;
}

#ifdef CURED
static void take_steps(void) {
#pragma omp parallel
    {
        const int members = omp_get_num_threads();
        uint64_t state = (uint64_t)omp_get_thread_num();
        for (int step = 0; step < STEPS; step++) {
            state = chew(state, WORK / members);
            if (step % SELDOM == 0) {
#pragma omp barrier
            }
        }
#pragma omp critical
        sum = sum + state;
    }
}
#else
static void take_steps(void) {
#pragma omp parallel
    {
        const int members = omp_get_num_threads(), self = omp_get_thread_num();
        uint64_t state = (uint64_t)self;
        for (int step = 0; step < STEPS; step++) {
            if (step % members == self)
                state = chew(state, WORK);
#pragma omp barrier /* HERE: busy-wait */
        }
#pragma omp critical
        sum = sum + state;
    }
}
#endif

int main(void) {
    take_steps();
    return sum == 1 ? 1 : 0;
}
