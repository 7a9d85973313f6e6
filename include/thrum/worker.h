// SPDX-License-Identifier: Apache-2.0
/* libthrum: blocking calls, and adding and stopping workers.
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
 *         perror("read"); // the errno that read has set
 */
#ifndef THRUM_WORKER_H
#define THRUM_WORKER_H

#include "thrum/thrum.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* --- calls that block --------------------------------------------------------------------------------- */

/* Calls fn(arg) on a kernel thread kept for such calls, while the caller waits and its worker runs other threads. Afterwards
 * *result, unless NULL, is what fn returned, and errno what fn left there. For calls that sleep in the kernel, or that compute for
 * long in a library that does not know this one. On an external kernel thread it is a plain call.
 *
 * The caller may be on another kernel thread afterwards; <thrum/errno.h>, which <thrum/thrum.h> includes, makes it read the
 * right errno. (With THRUM_PLAIN_ERRNO a function that has used errno before may read another thread's: let fn store errno
 * where `arg` points.)
 *
 * Each running call has a kernel thread to itself. Calls may wait for each other, and there may be as many as the system
 * allows kernel threads. Use a thrum_sem_t to limit them. Threads are reused, last in first out, and end after ten seconds
 * without a call. If none is free and the system grants no further one, the error is EAGAIN, at once and without a call.
 * (Waiting for another call to end might last for ever.)
 *
 * fn runs with all signals blocked except those that faults raise, on all CPUs of the process. It has the caller's
 * floating-point modes, and the thread-local variables of its own kernel thread, except errno. It is not a ULT but an external
 * kernel thread, and may call what those may. It must return: pthread_exit, a C++ exception that leaves it, and
 * cancellation of its kernel thread are undefined. In the child of a fork that it calls, its return ends the process.
 *
 * thrum_fini waits for all running calls.
 *
 * From: ULT, external. Errors: EAGAIN no kernel thread available; EINVAL `fn` is NULL; EPERM the caller is a tasklet or a
 * scheduler. After Go's and tokio's threads for system calls. */
int thrum_blocking(void *(*fn)(void *), void *arg, void **result);

/* The same, but the caller waits at most until `deadline` (ns, <thrum/time.h>; UINT64_MAX: for the end). The call cannot be
 * stopped: after ETIMEDOUT it continues and its result is discarded. So `arg` must stay valid as long as fn uses it, for
 * example as memory that the last of the two frees. From an external kernel thread, too, fn runs on another kernel thread,
 * unless `deadline` is UINT64_MAX. From: ULT, external. Errors: as thrum_blocking; ETIMEDOUT. */
int thrum_blocking_until(void *(*fn)(void *), void *arg, void **result, uint64_t deadline);

/* --- workers ------------------------------------------------------------------------------------------ */

/* Adds a worker to the running runtime. *number, unless NULL, is its number: the lowest free one, so that numbers stay
 * below 1024. Numbers have gaps where workers were stopped, and one where preemption has a worker of its own.
 *
 * From: ULT, external.
 * Errors: ESRCH no runtime; EAGAIN there are 1024 workers, or the system grants no kernel thread, or no timer or signal for
 * preemption; ENOMEM; EPERM the caller is a tasklet or a scheduler. After Argobots' ABT_xstream_create. */
int thrum_worker_add(unsigned *number);

/* The same, but the caller waits at most until `deadline` (ns, <thrum/time.h>) while other threads add or stop workers, which
 * may last as long as a stop. From: ULT, external. Errors: as thrum_worker_add; ETIMEDOUT: then no worker was added. */
int thrum_worker_add_until(unsigned *number, uint64_t deadline);

/* Stops a worker when the thread that it runs next waits, yields, ends or is preempted; returns when its kernel thread has
 * ended. Its threads, sleeping ones included, go to the other workers; its scheduler (thrum_worker_set_sched) is free for
 * another worker. The caller may be a ULT on that worker. thrum_fini waits for a stop that is under way.
 *
 * From: ULT, external.
 * Errors: ESRCH no runtime; EINVAL there is no such worker (any more); EBUSY it is the worker that called thrum_init, the
 * last one, or one that threads are bound to; EPERM the caller is a tasklet or a scheduler. After Argobots'
 * ABT_xstream_join. */
int thrum_worker_stop(unsigned number);

/* The same, but the caller waits at most until `deadline` (ns, <thrum/time.h>). After ETIMEDOUT the worker still stops, and
 * its number is free when it has; calling this again with the number waits for that. From: ULT, external.
 * Errors: as thrum_worker_stop; ETIMEDOUT; EBUSY also if other threads were stopping or adding workers until the deadline:
 * then the worker was not told to stop. */
int thrum_worker_stop_until(unsigned number, uint64_t deadline);

/* The number of the worker that the caller runs on; -1 on an external kernel thread. A ULT that waits, yields or is
 * preempted may be on another worker afterwards. From: anywhere, also signal handlers. */
int thrum_worker_self(void);

/* What a worker has done so far. A stopped worker's counts are kept, and the next worker with its number continues them.
 * Each count is exact, but they are not read at the same time. */
struct thrum_worker_counters {
    uint64_t
        switches; /* context switches to a thread or back to the worker's own loop, other than by calls and returns */
    uint64_t steals;      /* threads stolen from other workers */
    uint64_t parks;       /* how often it found nothing to run and slept */
    uint64_t migrations;  /* threads that thrum_migrate sent to it */
    uint64_t preemptions; /* <thrum/preempt.h> */
    uint64_t ticks;       /* interrupts that asked which thread is next, also those that did not preempt */
};

/* From: anywhere, also signal handlers. Errors: EINVAL there is no such worker, or `counters` is NULL. */
int thrum_worker_get_counters(unsigned number, struct thrum_worker_counters *counters);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
