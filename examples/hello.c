// SPDX-License-Identifier: Apache-2.0
// A thousand threads. cc hello.c $(pkg-config --cflags --libs thrum)
#include <stdio.h>
#include <thrum/thrum.h>

static void *square(void *number) {
    long *n = number;
    *n *= *n;
    return NULL;
}

int main(void) {
    enum { COUNT = 1000 };
    static long numbers[COUNT];
    static thrum_t threads[COUNT];
    long sum = 0;
    int error = thrum_init(NULL);
    for (int i = 0; i < COUNT; i++)
        numbers[i] = i;
    if (error == 0)
        error = thrum_spawn_many(COUNT, threads, NULL, square, numbers, sizeof numbers[0]);
    if (error != 0) {
        fprintf(stderr, "hello: error %d\n", error);
        return 1;
    }
    for (int i = 0; i < COUNT; i++) {
        thrum_join(threads[i], NULL);
        sum += numbers[i];
    }
    printf("%d threads on %u workers: the sum of squares is %ld\n", COUNT, thrum_workers(), sum);
    return thrum_fini();
}
