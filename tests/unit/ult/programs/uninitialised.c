// SPDX-License-Identifier: Apache-2.0
/* A program that never calls thrum_init, for leak checkers: its workers are there when it ends, and nothing is lost. */
#include <thrum/thrum.h>

static void *nothing(void *arg) {
    return arg;
}

int main(void) {
    thrum_t thread;
    return thrum_spawn(&thread, NULL, nothing, NULL) != 0 || thrum_join(thread, NULL) != 0;
}
