// SPDX-License-Identifier: Apache-2.0
/* What gdb.sh looks at: four threads that live together and end, then one that stops in marker() on a reused thread. */
#include <pthread.h>
#include <stdio.h>

static pthread_barrier_t together;

__attribute__((noinline)) void marker(int *value);
__attribute__((noinline)) void marker(int *value) {
    ++*value;
}

static void *first(void *argument) {
    pthread_barrier_wait(&together);
    return argument;
}

static void *second(void *argument) {
    marker(argument);
    printf("program: second saw %d\n", *(int *)argument);
    fflush(stdout);
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    int value = 6;

    pthread_barrier_init(&together, NULL, 4);
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, first, NULL) != 0)
            return 1;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    if (pthread_create(&threads[0], NULL, second, &value) != 0)
        return 1;
    pthread_join(threads[0], NULL);
    return value;
}
