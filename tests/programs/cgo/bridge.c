// SPDX-License-Identifier: Apache-2.0
/* C threads that call into Go and end: for main.go. */
#define _GNU_SOURCE
#include "bridge.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "_cgo_export.h"

int plus_one(int number) {
    return number + 1;
}

static void *call_go(void *argument) {
    return (void *)(intptr_t)goAdd((int)(intptr_t)argument);
}

int threads_that_call_go(int round) {
    pthread_t threads[10];
    for (int i = 0; i < 10; i++)
        if (pthread_create(&threads[i], NULL, call_go, (void *)(intptr_t)(round + i)) != 0)
            return -1;
    int sum = 0;
    for (int i = 0; i < 10; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (int)(intptr_t)result;
    }
    return sum;
}

/* As in include/thrum/cache.h, which a program elsewhere would include. */
struct counters {
    uint32_t version, size;
    uint64_t created, reused, retired, passed;
};

void report_cache(void) {
    const struct counters *c = dlsym(RTLD_DEFAULT, "thrum_cache_counters");
    if (c != NULL && c->version == 1)
        fprintf(stderr, "thrum: pid %d (cgo): created %llu, reused %llu, retired %llu, passed through %llu\n",
                (int)getpid(), (unsigned long long)c->created, (unsigned long long)c->reused,
                (unsigned long long)c->retired, (unsigned long long)c->passed);
}
