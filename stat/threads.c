// SPDX-License-Identifier: Apache-2.0
/* The functions that make and join threads: counted, and each thread told of its beginning, so that it knows its
 * stack and, for PROBE_TIMER, has a timer. */
#include <errno.h>
#include <pthread.h>
#include <threads.h>
#include <time.h>

#include "real.h"
#include "stat.h"

/* --- what a thread starts with --------------------------------------------------------------------------- */

/* Between pthread_create and the thread's first steps. A slot is taken by `busy` 0 -> 1 and given back by the thread
 * as soon as it has read it. */
struct start {
    uint32_t busy;
    void *(*fn)(void *);
    void *arg;
    uint64_t stack_size;
};

enum { STARTS = 1024 };
static struct start starts[STARTS];

static struct start *start_new(void *(*fn)(void *), void *arg, uint64_t stack_size) {
    static uint32_t turn;
    uint32_t from = fetch_add_relaxed(&turn, 1);
    for (unsigned i = 0; i < STARTS; i++) {
        struct start *one = &starts[(from + i) % STARTS];
        uint32_t seen = 0;
        if (!cas_acquire(&one->busy, &seen, 1)) /* pairs with the stores of 0: it has been read */
            continue;
        one->fn = fn;
        one->arg = arg;
        one->stack_size = stack_size;
        return one;
    }
    return NULL;
}

static void *start_thread(void *argument) {
    struct start *slot = argument, start = *slot;
    store_release(&slot->busy, 0); /* pairs with start_new */
    stack_of_thread(start.stack_size);
    timer_thread_begins();
    waits_thread_begins();
    return start.fn(start.arg);
}

static uint64_t stack_size_of(const pthread_attr_t *attributes) {
    pthread_attr_t usual;
    size_t size = 0;
    if (attributes != NULL) {
        pthread_attr_getstacksize(attributes, &size);
    } else if (pthread_getattr_default_np(&usual) == 0) {
        pthread_attr_getstacksize(&usual, &size);
        pthread_attr_destroy(&usual);
    }
    return size;
}

/* --- POSIX ---------------------------------------------------------------------------------------------- */

INTERPOSE int pthread_create(pthread_t *restrict handle, const pthread_attr_t *restrict attributes,
                             void *(*fn)(void *), void *restrict arg) {
    struct probe *probe = probe_of_process();
    struct start *start = probe != NULL ? start_new(fn, arg, stack_size_of(attributes)) : NULL;
    if (start == NULL && probe != NULL && probe->mode == PROBE_TIMER)
        fetch_add_relaxed(&probe->untimed, 1);
    if (start != NULL) {
        fn = start_thread;
        arg = start;
    }
    int error = REAL(pthread_create)(handle, attributes, fn, arg);
    if (error != 0 && start != NULL)
        store_release(&start->busy, 0); /* pairs with start_new */
    if (error == 0 && probe != NULL) {
        const struct registers here = registers_here();
        fetch_add_relaxed(&probe->created, 1);
        makers_count(probe, &here, __builtin_frame_address(0));
    }
    return error;
}

static int joined(int error) {
    struct probe *probe = probe_of_process();
    if (error == 0 && probe != NULL)
        fetch_add_relaxed(&probe->joined, 1);
    return error;
}

INTERPOSE int pthread_join(pthread_t handle, void **result) {
    return joined(REAL(pthread_join)(handle, result));
}

INTERPOSE int pthread_tryjoin_np(pthread_t handle, void **result) {
    return joined(REAL(pthread_tryjoin_np)(handle, result));
}

INTERPOSE int pthread_timedjoin_np(pthread_t handle, void **result, const struct timespec *deadline) {
    return joined(REAL(pthread_timedjoin_np)(handle, result, deadline));
}

INTERPOSE int pthread_clockjoin_np(pthread_t handle, void **result, clockid_t clock,
                                   const struct timespec *deadline) {
    return joined(REAL(pthread_clockjoin_np)(handle, result, clock, deadline));
}

/* --- C11: libc makes its threads through internal calls ------------------------------------------------------ */

INTERPOSE int thrd_create(thrd_t *handle, thrd_start_t fn, void *arg) {
    int result = REAL(thrd_create)(handle, fn, arg);
    struct probe *probe = probe_of_process();
    if (result == thrd_success && probe != NULL) {
        const struct registers here = registers_here();
        fetch_add_relaxed(&probe->created, 1);
        makers_count(probe, &here, __builtin_frame_address(0));
        if (probe->mode == PROBE_TIMER)
            fetch_add_relaxed(&probe->untimed, 1);
    }
    return result;
}

INTERPOSE int thrd_join(thrd_t handle, int *result) {
    int outcome = REAL(thrd_join)(handle, result);
    joined(outcome == thrd_success ? 0 : EINVAL);
    return outcome;
}
