// SPDX-License-Identifier: Apache-2.0
// Ten thousand threads sleep for a second, all at once. cc hello.c $(pkg-config --cflags --libs thrum) && ./a.out
#include <stdio.h>
#include <string.h>
#include <thrum/thrum.h>

static void *doze(void *unused) {
    thrum_sleep(1 * THRUM_S);
    return unused;
}

int main(void) {
    enum { COUNT = 10000 };
    static thrum_t threads[COUNT];
    uint64_t begun = thrum_now();
    int error = thrum_init(NULL);
    for (int i = 0; i < COUNT && error == 0; i++)
        error = thrum_spawn(&threads[i], NULL, doze, NULL);
    for (int i = 0; i < COUNT && error == 0; i++)
        error = thrum_join(threads[i], NULL);
    if (error != 0)
        fprintf(stderr, "hello: %s\n", strerror(error));
    else
        printf("%d threads slept for a second each; it took %.1f\n", COUNT, (thrum_now() - begun) / 1e9);
    thrum_fini();
    return error != 0;
}
