// SPDX-License-Identifier: Apache-2.0
/* libthrum: a million threads that cost nanoseconds.
 *
 *     #include <stdio.h>
 *     #include <thrum/thrum.h>
 *
 *     static void *greet(void *name) {
 *         printf("hello, %s\n", (const char *)name);
 *         return NULL;
 *     }
 *
 *     int main(void) {
 *         thrum_t thread;
 *         thrum_spawn(&thread, NULL, greet, "world");
 *         return thrum_join(thread, NULL);
 *     }
 *
 *     cc hello.c $(pkg-config --cflags --libs thrum)
 *
 * Threads here are user-level threads (ULTs): each has a stack of its own, and many of them are run by a few
 * *workers*, kernel threads that are made by thrum_init, as many as there are CPUs to be had. A worker that has
 * nothing to do takes work from another, and sleeps when there is none.
 *
 * CALLING CONTEXTS. "ULT" is a thread made by thrum_spawn, or the thread that called thrum_init. "External" is any
 * other kernel thread of the process. Each function says who may call it; none may be called from a signal handler
 * unless it says so.
 *
 * ERRORS. Functions return 0 or a positive errno value, as pthreads do; errno is not touched.
 *
 * THREAD-LOCAL VARIABLES (errno among them) belong to the kernel thread. A ULT that waits may go on elsewhere: what it
 * has read from a thread-local before may not be there after, and the compiler may have kept its address. Use them
 * between two calls of this library, not across one.
 */
#ifndef THRUM_THRUM_H
#define THRUM_THRUM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* --- the runtime -------------------------------------------------------------------------------------- */

struct thrum_config {
    unsigned workers; /* 0: THRUM_WORKERS, or else as many as the process has CPUs */
};

/* Starts the workers. The caller becomes a ULT that is bound to the first of them and stays on its own kernel thread.
 * A program that never calls this gets a runtime of its own accord at the first thrum_spawn. `config` may be NULL.
 *
 * From: an external kernel thread, when no runtime is running.
 * Errors: EBUSY a runtime is running; EINVAL config->workers, or THRUM_WORKERS in the environment, is more than 1024;
 * ENOMEM, EAGAIN no memory, or no kernel thread, to be had. */
int thrum_init(const struct thrum_config *config);

/* Stops the workers and frees all stacks. Threads that have not ended never run again; whoever still waits for one
 * waits for ever: join them first.
 *
 * From: the thread that called thrum_init.
 * Errors: EPERM somebody else. */
int thrum_fini(void);

/* How many workers there are; 0 without a runtime. From: anywhere, also signal handlers. */
unsigned thrum_workers(void);

/* --- threads ------------------------------------------------------------------------------------------ */

typedef struct thrum_unit *thrum_t;

/* How a thread is to be made. Opaque; set by the functions below. */
typedef struct {
    uint64_t opaque[8];
} thrum_attr_t;

enum {
    /* The new thread waits in the queue and its maker goes on. Without this it runs at once and its maker waits in the
     * queue, where an idle worker may take it. Better where one thread makes many that all do little. */
    THRUM_SPAWN_QUEUED = 1,
};

/* From: anywhere. */
void thrum_attr_init(thrum_attr_t *attr);
/* Errors: EINVAL not one of the flags above. */
int thrum_attr_set_flags(thrum_attr_t *attr, unsigned flags);
/* At least so many bytes; rounded up to a power of two from 16 KiB. All sizes cost the same, and memory is only used
 * for what is touched. Errors: EINVAL more than 1 GiB. */
int thrum_attr_set_stack_size(thrum_attr_t *attr, size_t size);

/* Makes a thread that runs fn(arg). `attr` may be NULL. With a NULL `thread` nobody will join it: it is detached.
 * *thread is set when this returns; the new thread, which may run before that, has thrum_self.
 *
 * From: ULT, external.
 * Errors: EAGAIN no memory for a descriptor or a stack, or no guard page to be had (vm.max_map_count). */
int thrum_spawn(thrum_t *thread, const thrum_attr_t *attr, void *(*fn)(void *), void *arg);

/* Waits until it has ended; *result is what its function returned. The handle is then used up: a second join, or a
 * detach, is undefined, as is joining by two at once.
 *
 * From: ULT, external.
 * Errors: EDEADLK it is the caller. */
int thrum_join(thrum_t thread, void **result);

/* Nobody will join it. The handle is used up. From: ULT, external. Errors: EINVAL somebody waits in a join. */
int thrum_detach(thrum_t thread);

/* Lets others run. Does nothing on an external kernel thread. From: anywhere. */
void thrum_yield(void);

/* The caller's handle; NULL on an external kernel thread. From: ULT, external. */
thrum_t thrum_self(void);

/* --- synchronisation ---------------------------------------------------------------------------------- */

/* Between ULTs, workers and external kernel threads, in any mixture. All zeros is a free mutex: static storage and
 * THRUM_MUTEX_INIT need no call. Unlocking hands it to who has waited for longest; there is no overtaking, and no
 * crowd is woken. */
typedef struct {
    uint64_t opaque[3];
} thrum_mutex_t;
#define THRUM_MUTEX_INIT                                                                                     \
    {                                                                                                        \
        { 0 }                                                                                                \
    }

/* From: ULT, external. Locking it twice is a deadlock; unlocking another's is undefined. */
void thrum_mutex_lock(thrum_mutex_t *mutex);
/* Errors: EBUSY somebody has it. */
int thrum_mutex_try_lock(thrum_mutex_t *mutex);
void thrum_mutex_unlock(thrum_mutex_t *mutex);

typedef struct {
    uint64_t opaque[4];
} thrum_cond_t;
#define THRUM_COND_INIT                                                                                      \
    {                                                                                                        \
        { 0 }                                                                                                \
    }

/* Unlocks the mutex, waits to be signalled, and has the mutex again when it returns. There are no spurious wake-ups,
 * but the condition may be over again: check it in a loop. All waiters of a condition use the same mutex.
 * From: ULT, external. */
void thrum_cond_wait(thrum_cond_t *cond, thrum_mutex_t *mutex);
/* Wakes one, or all. A waiter moves over to its mutex's queue rather than wake up and wait again.
 * From: ULT, external; with or without the mutex. */
void thrum_cond_signal(thrum_cond_t *cond);
void thrum_cond_broadcast(thrum_cond_t *cond);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
