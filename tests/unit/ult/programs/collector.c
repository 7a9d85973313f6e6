// SPDX-License-Identifier: Apache-2.0
/* libthrum beside the Boehm collector, as libthrum(7) says: main stays an external kernel thread, as it never calls thrum_init,
 * and ULTs allocate by thrum_blocking, where a kernel thread registers itself and lets in the collector's signals. What ULTs
 * keep is in memory that the collector looks at, not on their stacks. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define GC_THREADS
#define GC_NO_THREAD_REDIRECTS
#include <gc.h>
#include <thrum/thrum.h>
#include <thrum/worker.h>

enum { THREADS = 8, ROUNDS = 12, LENGTH = 2000 };

struct node {
    struct node *next;
    long value;
};

static struct node **kept; /* one for each thread, in memory that is never collected */

static void require(int ok, const char *what) {
    if (ok)
        return;
    fprintf(stderr, "collector: %s\n", what);
    abort();
}

static void let_the_collector_in(int how) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, GC_get_suspend_signal());
    sigaddset(&signals, GC_get_thr_restart_signal());
    pthread_sigmask(how, &signals, NULL);
}

/* On a kernel thread that is no worker. */
static void *make_list(void *place) {
    struct GC_stack_base base;
    require(GC_get_stack_base(&base) == GC_SUCCESS, "no stack base");
    let_the_collector_in(SIG_UNBLOCK);
    require(GC_register_my_thread(&base) == GC_SUCCESS, "the thread could not be registered");
    struct node *list = NULL;
    for (long i = 0; i < LENGTH; i++) {
        struct node *node = GC_MALLOC(sizeof *node);
        require(node != NULL, "no memory");
        node->next = list;
        node->value = i;
        list = node;
    }
    *(struct node **)place = list;
    GC_unregister_my_thread();
    let_the_collector_in(SIG_BLOCK);
    return NULL;
}

/* A ULT, which may be preempted, and be on another worker after each wait. */
static void *make_lists(void *place) {
    for (int round = 0; round < ROUNDS; round++) {
        require(thrum_blocking(make_list, place, NULL) == 0, "thrum_blocking");
        thrum_yield();
        long length = 0;
        for (struct node *node = *(struct node **)place; node != NULL; node = node->next)
            require(node->value == LENGTH - ++length, "a list is broken");
        require(length == LENGTH, "a list has lost its end");
    }
    return NULL;
}

int main(void) {
    thrum_t threads[THREADS];
    GC_INIT();
    GC_allow_register_threads();
    kept = GC_MALLOC_UNCOLLECTABLE(THREADS * sizeof *kept);
    for (int i = 0; i < THREADS; i++)
        require(thrum_spawn(&threads[i], NULL, make_lists, &kept[i]) == 0, "thrum_spawn");
    for (int i = 0; i < THREADS; i++)
        require(thrum_join(threads[i], NULL) == 0, "thrum_join");
    require(GC_get_gc_no() > 0, "nothing was ever collected");
    return 0;
}
