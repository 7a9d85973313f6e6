// SPDX-License-Identifier: Apache-2.0
/* libthrum: calls that block, and workers that come and go.
 *
 *     struct reading {
 *         int file;
 *         char bytes[4096];
 *         ssize_t count;
 *     };
 *
 *     static void *read_some(void *arg) {
 *         struct reading *reading = arg;
 *         reading->count = read(reading->file, reading->bytes, sizeof reading->bytes);
 *         return NULL;
 *     }
 *
 *     struct reading reading = {.file = 0};
 *     int error = thrum_blocking(read_some, &reading, NULL);
 *     if (error == 0 && reading.count < 0)
 *         perror("read"); // errno is what read left
 */
#ifndef THRUM_WORKER_H
#define THRUM_WORKER_H

#include "thrum/thrum.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* --- calls that block --------------------------------------------------------------------------------- */

/* Calls fn(arg) on a kernel thread that is kept for that, while the caller waits and its worker runs others; *result,
 * unless NULL, is what fn returned, and errno what fn left there. The caller may be on another kernel thread afterwards:
 * <thrum/errno.h>, which <thrum/thrum.h> includes, makes it read the right errno. (With THRUM_PLAIN_ERRNO a function that has
 * named errno before may read another thread's: let fn leave it where `arg` points to.) For what sleeps in the kernel, or
 * computes for long in a library that knows nothing of this one. On an external kernel thread it is a plain call.
 *
 * Each call that is on its way has a kernel thread to itself, so calls may wait for each other, and there may be as
 * many as the system allows kernel threads; a thrum_sem_t around the calls makes that fewer. Threads are used again,
 * last in first out, and end when they have had nothing to do for ten seconds. If none is free and the system gives no
 * other the answer is EAGAIN, at once and without a call: to wait for another call's end might be to wait for ever.
 *
 * fn runs with all signals blocked, but for those that a fault raises; with the caller's floating-point modes; on all
 * CPUs of the process; and with thread-local variables of its own kernel thread, errno apart. It is not a ULT, but an
 * external kernel thread, and may call what those may. It must return: pthread_exit, a C++ exception that leaves it,
 * and cancellation of its kernel thread are undefined. In the child of a fork that it calls, its return ends the
 * process.
 *
 * thrum_fini waits for all calls that are on their way.
 *
 * From: ULT, external. Errors: EAGAIN no kernel thread to be had; EINVAL `fn` is NULL; EPERM a tasklet, or a scheduler. After Go's and
 * tokio's threads for system calls. */
int thrum_blocking(void *(*fn)(void *), void *arg, void **result);

/* The same, but the caller waits until `moment` (ns, <thrum/time.h>; UINT64_MAX: for the end) at most. A call cannot be
 * stopped: it is made and goes on after ETIMEDOUT, and what it returns is lost, so `arg` must be there for as long as fn
 * wants it; let it be memory that whoever comes last frees. On an external kernel thread it is elsewhere, too, unless
 * the moment is UINT64_MAX. From: ULT, external. Errors: as thrum_blocking; ETIMEDOUT. */
int thrum_blocking_until(void *(*fn)(void *), void *arg, void **result, uint64_t moment);

/* --- workers ------------------------------------------------------------------------------------------ */

/* One more worker while the runtime runs. *number, unless NULL, is its number: the lowest that no worker has, so that
 * numbers stay below 1024. They have gaps where workers were stopped, and one where preemption has a worker of its own.
 *
 * From: ULT, external.
 * Errors: ESRCH no runtime; EAGAIN no kernel thread, or no timer or signal for preemption, to be had, or there are 1024;
 * ENOMEM; EPERM a tasklet, or a scheduler. After Argobots' ABT_xstream_create. */
int thrum_worker_add(unsigned *number);

/* Stops one, when what runs on it waits, yields, ends or is preempted next, and returns when its kernel thread has ended. Its
 * threads, those that sleep among them, go to the others; its scheduler (thrum_worker_set_sched) is free for another
 * worker. The caller may be a ULT on that very worker. thrum_fini, too, waits for one that is under way.
 *
 * From: ULT, external.
 * Errors: ESRCH no runtime; EINVAL no such worker (any more); EBUSY it is the one that called thrum_init, the last
 * one, or one that threads are bound to; EPERM a tasklet, or a scheduler. After Argobots' ABT_xstream_join. */
int thrum_worker_stop(unsigned number);

/* The same, but the caller waits until `moment` (ns, <thrum/time.h>) at most. The worker has been told to stop, and does;
 * its number is free when it has. Another call with the same number waits for that once more. From: ULT, external.
 * Errors: as thrum_worker_stop; ETIMEDOUT; EBUSY also if others were stopping or adding workers until then: it has not been
 * told. */
int thrum_worker_stop_until(unsigned number, uint64_t moment);

/* The number of the worker that the caller runs on now; a ULT that waits, yields or is preempted may be on another
 * afterwards. -1 on an external kernel thread. From: anywhere, also signal handlers. */
int thrum_worker_self(void);

/* What a worker has done so far, also while it was another's (one that was stopped keeps its counts, and the next in
 * its place goes on with them). Each is exact, but they are not read at one moment. */
struct thrum_worker_counters {
    uint64_t switches;    /* to a thread, or back to its own loop, by other than calls and returns */
    uint64_t steals;      /* threads taken from other workers */
    uint64_t parks;       /* how often it found nothing to do, and slept */
    uint64_t migrations;  /* threads that thrum_migrate sent to it */
    uint64_t preemptions; /* <thrum/preempt.h> */
    uint64_t ticks;       /* interrupts that asked who is next, also those after which the thread went on */
};

/* From: anywhere, also signal handlers. Errors: EINVAL there is no such worker, or `counters` is NULL. */
int thrum_worker_get_counters(unsigned number, struct thrum_worker_counters *counters);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
