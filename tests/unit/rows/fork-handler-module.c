// SPDX-License-Identifier: Apache-2.0
//
// A library that fork_others.c is linked with. Its constructor runs before the cache's and asks for fork handlers, which
// create threads. Linked by tests/unit/rows/CMakeLists.txt.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

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

static pid_t parent;
static void use_threads_before(void) {
    parent = getpid();
    use_threads();
}

// Where one child hangs its parent gives up; no other child may stay.
static void use_threads_in_child(void) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1 || getppid() != parent)
        abort();
    use_threads();
}

__attribute__((constructor)) static void watch(void) {
    if (pthread_atfork(use_threads_before, use_threads, use_threads_in_child) != 0)
        abort();
}
