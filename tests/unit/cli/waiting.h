// SPDX-License-Identifier: Apache-2.0
//
// Threads that wait, for programs that libthrum-stat.so is loaded into (waits.c, preloaded.c), and interrupted.c.
#pragma once

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

// Returns at once, as the word has another value.
static inline void wait_in_vain(int times) {
    static unsigned word;
    for (int i = 0; i < times; i++)
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
}

static inline bool is_in(pid_t thread, long number) {
    char path[64], text[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", thread);
    FILE *file = fopen(path, "r");
    const bool got = file != NULL && fgets(text, sizeof text, file) != NULL;
    if (file != NULL)
        fclose(file);
    return got && text[0] != 'r' && atol(text) == number;
}

static inline void until_in(_Atomic pid_t *thread, long number) {
    while (atomic_load(thread) == 0 || !is_in(atomic_load(thread), number))
        sched_yield();
}

static inline void until_waiting(_Atomic pid_t *thread) {
    until_in(thread, SYS_futex);
}

static inline pthread_t start(void *(*fn)(void *), void *arg) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, fn, arg) != 0)
        abort();
    return thread;
}
