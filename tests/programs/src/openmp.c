// SPDX-License-Identifier: Apache-2.0
/* An OpenMP program of the kind that makes libgomp create threads all the time: team sizes that alternate, nested
 * regions, and regions entered from short-lived threads. Prints sums that do not depend on scheduling.
 * Run by built.sh, without and with the cache.
 */
#include <omp.h>
#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 40, ITEMS = 2000 };

static long flat_region(int team) {
    long sum = 0;
#pragma omp parallel for num_threads(team) reduction(+ : sum) schedule(dynamic, 16)
    for (int i = 0; i < ITEMS; i++)
        sum += i % 7;
    return sum;
}

static long nested_region(int outer, int inner) {
    long sum = 0;
#pragma omp parallel num_threads(outer) reduction(+ : sum)
    {
        long part = 0;
#pragma omp parallel num_threads(inner) reduction(+ : part)
        part += omp_get_num_threads() * 100 + omp_get_level();
        sum += part;
    }
    return sum;
}

/* threadprivate data starts fresh in every new OpenMP thread of the pool. */
static int visits;
#pragma omp threadprivate(visits)

static void *region_in_a_thread(void *argument) {
    long *sum = argument;
    visits++;
    *sum = flat_region(3) + 1000000 * visits;
    return NULL;
}

static long from_short_lived_threads(void) {
    long total = 0;
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        long sum = 0;
        if (pthread_create(&thread, NULL, region_in_a_thread, &sum) != 0)
            return -1;
        pthread_join(thread, NULL);
        total += sum;
    }
    return total;
}

int main(void) {
    static const int teams[] = {2, 5, 1, 8, 3};
    long flat = 0, nested = 0, threads = 0;

    omp_set_dynamic(0);
    omp_set_max_active_levels(2);
    for (int round = 0; round < ROUNDS; round++) {
        flat += flat_region(teams[round % 5]);
        nested += nested_region(3, 1 + round % 4);
        threads += from_short_lived_threads();
    }
    printf("flat %ld, nested %ld, from threads %ld\n", flat, nested, threads);
    return 0;
}
