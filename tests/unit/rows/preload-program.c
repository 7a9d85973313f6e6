// SPDX-License-Identifier: Apache-2.0
//
// What preload.sh has `thrum run` start or refuse: makes a thread, says that it ran, with which arguments, and ends with
// code 7. Built as usual, statically, and with musl's dynamic loader named as its interpreter; by preload.sh itself with
// musl, and for 32 bits.
#include <pthread.h>
#include <stdio.h>

static void *nothing(void *arg) {
    return arg;
}

int main(int argc, char **argv) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 1;
    printf("ran with");
    for (int i = 1; i < argc; i++)
        printf(" %s", argv[i]);
    printf("\n");
    return 7;
}
