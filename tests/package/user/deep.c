// SPDX-License-Identifier: Apache-2.0
/* A thread whose function has a larger array than its stack, and touches the far end first. It has to end by SIGSEGV,
 * after the library's line about it, instead of writing into whatever lies there. */
#include <stdio.h>
#include <thrum/thrum.h>

static void *go_deep(void *text) {
    volatile char bytes[256 * 1024];
    bytes[0] = 'x';
    printf("%s%c\n", (const char *)text, bytes[0]);
    return NULL;
}

int main(void) {
    thrum_t thread;
    setvbuf(stdout, NULL, _IONBF, 0);
    if (thrum_spawn(&thread, NULL, go_deep, "it went on: ") != 0)
        return 1;
    return thrum_join(thread, NULL);
}
