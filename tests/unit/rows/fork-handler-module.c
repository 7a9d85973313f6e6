// SPDX-License-Identifier: Apache-2.0
//
// A library that fork_others.c is linked with. Its constructor runs before the cache's and asks for fork handlers, which
// create threads. Linked by tests/unit/rows/CMakeLists.txt.
#include <pthread.h>
#include <stdlib.h>

int fork_handler_runs;

static void *nothing(void *arg) {
    return arg;
}

static void use_threads(void) {
    pthread_t joined, detached;
    if (pthread_create(&joined, NULL, nothing, NULL) != 0 ||
        pthread_create(&detached, NULL, nothing, NULL) != 0 || pthread_detach(detached) != 0 ||
        pthread_join(joined, NULL) != 0)
        abort();
    fork_handler_runs++;
}

__attribute__((constructor)) static void watch(void) {
    if (pthread_atfork(use_threads, use_threads, use_threads) != 0)
        abort();
}
