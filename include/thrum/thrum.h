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
 * CALLING CONTEXTS. "ULT" is a thread made by thrum_spawn, tasklets too where nothing waits, or the thread that called
 * thrum_init. "External" is any
 * other kernel thread of the process. Each function says who may call it; none may be called from a signal handler
 * unless it says so.
 *
 * ERRORS. Functions return 0 or a positive errno value, as pthreads do; errno is not touched. NULL where a handle, an object,
 * a function or a place for a result is needed is EINVAL in all of them; what returns something else answers 0, NULL or
 * "", or, if that would go unnoticed (thrum_mutex_lock), says so in one line and aborts. After thrum_fini the handles that
 * there were are ESRCH, until the next runtime begins: from there on to use them is undefined.
 *
 * THREAD-LOCAL VARIABLES (errno among them) belong to the kernel thread. A ULT that waits may resume on another: what it
 * has read from a thread-local before may not be there after, and the compiler may have kept its address. Use them
 * between two calls of this library, not across one. Only errno is safe from the compiler, since this header makes it
 * another macro (<thrum/errno.h>; THRUM_PLAIN_ERRNO: without). What a thread that is preempted in between has of them is
 * its mode (<thrum/preempt.h>): all, unless told.
 */
#ifndef THRUM_THRUM_H
#define THRUM_THRUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef THRUM_PLAIN_ERRNO
#include "thrum/errno.h"
#endif
#include "thrum/preempt.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* --- the runtime -------------------------------------------------------------------------------------- */

/* What is 0 is as the environment says, or else as usual. */
struct thrum_config {
    unsigned workers;  /* THRUM_WORKERS; as many as the process may use CPUs (affinity, control group) */
    size_t stack_size; /* THRUM_STACK_SIZE; 64 KiB. Where attributes do not say, and rounded as there */
    struct thrum_preempt_config preempt; /* <thrum/preempt.h> */
    uint64_t reserved[4];                /* 0, which later versions take for what they do today */
};

/* Starts the workers. The caller becomes a ULT that is bound to the first of them and stays on its own kernel thread (but
 * for thrum-preemption(7), Waiting in the kernel).
 * `config` may be NULL. A program that never calls this gets workers at the first thrum_spawn, all with kernel threads
 * of their own; they stay until the process ends.
 *
 * In a child of fork there is no runtime: the thread that called fork, a ULT or not, goes on as an external one, and may
 * call thrum_init or thrum_spawn for a new one. Threads of the parent do not exist there; objects that they hold or wait
 * for (<thrum/sync.h>) are to be initialised again before they are used. Where a ULT or a tasklet goes on so, the return
 * of its function ends the child, with exit code 0.
 *
 * The library is to be there from the program's start, linked or preloaded: one that comes with dlopen later is behind
 * the C library, and pthread_exit in a ULT is then not its own: it says so in one line and aborts. So it is with
 * pthread_getattr_np, which then names the stack of the kernel thread.
 *
 * From: an external kernel thread, when no runtime is running.
 * Errors: EBUSY a runtime is running; EINVAL config->workers is more than 1024, config->stack_size more than 1 GiB, something
 * in config->preempt none of its values or in config->reserved not 0, or a THRUM_ variable in the environment that is needed
 * is not what it may be, which a line on stderr explains; ENOMEM, EAGAIN no memory, or no kernel thread, no timer or no
 * signal for preemption, to be had. */
int thrum_init(const struct thrum_config *config);

/* Stops the workers and frees all stacks. Threads that have not ended never run again; whoever still waits for one
 * waits for ever, and objects that they hold or wait for are to be initialised again before they are used: join them
 * first. Pools are empty then; those in which threads were are to be destroyed. A worker stops when what runs on it waits,
 * yields or ends: this waits for a thread that computes without any of that, and for ever for one that does so for ever. No
 * other kernel thread may be in a call of this library meanwhile.
 *
 * From: the thread that called thrum_init.
 * Errors: EPERM somebody else. */
int thrum_fini(void);

/* How many workers there are; 0 without a runtime. Their numbers have gaps once some were stopped (<thrum/worker.h>).
 * From: anywhere, also signal handlers. */
unsigned thrum_workers(void);

/* Which runtime of the process there is: a number that no other one has; 0 without a runtime. A handle is good as long as
 * this is what it was when its thread was made. From: anywhere, also signal handlers. */
uint64_t thrum_runtime_id(void);

/* How many thrum_init would start that is not told. 0: THRUM_WORKERS is not what it may be, after a line on stderr.
 * From: anywhere. */
unsigned thrum_workers_default(void);

/* --- threads ------------------------------------------------------------------------------------------ */

typedef struct thrum_unit *thrum_t;
typedef struct thrum_pool *thrum_pool_t; /* <thrum/pool.h> */

/* How a thread is to be made. Opaque; set by the functions below. */
typedef struct {
    uint64_t opaque[8];
} thrum_attr_t;

enum {
    /* The new thread waits in the queue and its maker goes on. Without this it runs at once and its maker waits in the
     * queue, where an idle worker may take it; but not that of a maker that stays where it is: an external kernel thread,
     * a tasklet, who is bound to a worker, as the thread that called thrum_init, or has a pool; nor the next few of one that
     * an idle worker has taken. Better where one thread makes many that all do little. */
    THRUM_SPAWN_QUEUED = 1,
    /* A tasklet: runs to its end on whatever stack there is, as a function that is called there: with the caller's
     * rounding mode and other floating-point control state, which it leaves as they are. Costs less, and has no memory
     * but its descriptor. It must call nothing that may wait, and be neither cancellable nor measured. */
    THRUM_SPAWN_TASKLET = 2,
    /* thrum_cancel may end it. */
    THRUM_SPAWN_CANCELLABLE = 4,
    /* thrum_stack_used is exact to a page: its stack begins without memory. Costs some microseconds. */
    THRUM_SPAWN_MEASURED = 8,
};

enum { THRUM_PRIORITY_MAX = 63, THRUM_NAME_SIZE = 16, THRUM_STACK_MIN = 16384 };

#define THRUM_ANY_WORKER (~0U)

/* After pthread_attr_t of POSIX, without anything to destroy. Where one of these says that something is wrong the attributes
 * are as they were. From: anywhere, all of them. */
void thrum_attr_init(thrum_attr_t *attr);
/* Errors: EINVAL not one of the flags above. */
int thrum_attr_set_flags(thrum_attr_t *attr, unsigned flags);
/* At least so many bytes; rounded up to a power of two from 16 KiB. All sizes cost the same, and memory is only used
 * for what is touched. Unless told, config->stack_size. Errors: EINVAL more than 1 GiB.
 *
 * Below each stack is a guard of 72 KiB, which takes no memory. A function with arrays of more than 64 KiB may step across it
 * unless it is compiled with -fstack-clash-protection, which pkg-config's and CMake's thrum say where the compiler has it. */
int thrum_attr_set_stack_size(thrum_attr_t *attr, size_t size);

/* The thread runs on `size` bytes from `memory` on, which are the user's until it has been joined (never, for a detached
 * one). There is no guard below them. NULL and 0: on one of the library's own again. Not for thrum_spawn_many.
 * Errors: EINVAL less than THRUM_STACK_MIN, or beyond the end of the address space. */
int thrum_attr_set_stack(thrum_attr_t *attr, void *memory, size_t size);

/* It runs on this worker only (they count from 0; <thrum/worker.h>); THRUM_ANY_WORKER, which is usual: on any. With no pool,
 * and not a tasklet. Errors: EINVAL there can be no such worker; thrum_spawn says EINVAL if there is none. */
int thrum_attr_set_worker(thrum_attr_t *attr, unsigned worker);

/* 0, unless told, to THRUM_PRIORITY_MAX, the highest; for priority pools (<thrum/pool.h>) and mutexes (<thrum/sync.h>):
 * workers' own run queues do not look at it. Errors: EINVAL more. */
int thrum_attr_set_priority(thrum_attr_t *attr, unsigned priority);
/* For deadline pools: any number, the smallest runs first. */
void thrum_attr_set_deadline(thrum_attr_t *attr, uint64_t deadline);
/* Whether it is preempted, and what it keeps then: enum thrum_preempt_mode. Unless told, as the runtime. Where the runtime
 * preempts nobody (THRUM_PREEMPT_NONE) it may not ask for more: thrum_spawn says EINVAL then, and where the runtime does
 * not have what the mode needs (<thrum/preempt.h>). Errors: EINVAL no such mode. */
int thrum_attr_set_preempt(thrum_attr_t *attr, unsigned mode);
/* Its time slice, in microseconds; 0: that of the scheduler that runs it (thrum_sched_set_slice), or else the runtime's.
 * Errors: EINVAL less than THRUM_SLICE_MIN, or more than THRUM_SLICE_MAX. */
int thrum_attr_set_slice(thrum_attr_t *attr, unsigned slice);
/* Where it waits when it can run; NULL, which is usual: in the run queue of the worker that finds out that it can. */
void thrum_attr_set_pool(thrum_attr_t *attr, thrum_pool_t pool);

/* Makes a thread that runs fn(arg). `attr` may be NULL. With a NULL `thread` nobody will join it: it is detached.
 * *thread is set when this returns; the new thread, which may run before that, has thrum_self.
 *
 * From: ULT, external.
 * Errors: EAGAIN no memory for a descriptor or a stack, no guard page to be had (vm.max_map_count), or in mode OWN_TLS no
 * kernel thread; EINVAL `fn`
 * is NULL, or `attr` names a worker that there is not, or one and a pool, or is not for a tasklet, or asks for a
 * preemption that the runtime does not have; the first of a program that never called thrum_init: as that. That a new
 * thread runs at once, and its maker may be stolen, after Frigo, Leiserson and Randall, "The Implementation of the Cilk-5
 * Multithreaded Language", PLDI 1998; tasklets after Argobots. */
int thrum_spawn(thrum_t *thread, const thrum_attr_t *attr, void *(*fn)(void *), void *arg);

/* Makes `count` of them, thread i with fn(args + i * stride), and sets threads[0 .. count); by halves, so that idle
 * workers help with the making, and waits for those helpers: no cancellation point.
 *
 * From: ULT, external.
 * Errors: as thrum_spawn; EPERM a tasklet, or a scheduler. Then those that had been made have been joined, and no handle
 * is good. After Argobots' ABT_thread_create_many. */
int thrum_spawn_many(size_t count, thrum_t *threads, const thrum_attr_t *attr, void *(*fn)(void *),
                     void *args, size_t stride);

/* Waits until it has ended; *result is what its function returned. The handle is then used up, as it is when a thread
 * that was detached ends: to use it after that is undefined. (A second join or detach is answered EINVAL as long as the
 * descriptor has not become another thread's.) So is the join of a thread that another joins or detaches at that
 * very moment; where he is seen to wait already it is EINVAL.
 *
 * From: ULT, external. Errors: EDEADLK it is the caller; EINVAL it is NULL, somebody else waits for its end, or it is
 * detached; ESRCH there is no runtime that could run it to its end, as in the child of a fork, or thrum_fini was called; EPERM
 * it has not ended, and the caller is a tasklet, or a scheduler. With thrum_fini all handles are used up. After pthread_join of POSIX, as
 * thrum_detach after pthread_detach. */
int thrum_join(thrum_t thread, void **result);

/* The same, but the handle is good for more: for one thrum_revive, thrum_join, which then does not wait, or
 * thrum_detach. From and errors: as thrum_join. After Argobots' ABT_thread_join. */
int thrum_join_keep(thrum_t thread, void **result);

/* A thread that has ended and was not joined runs again, as made with the same attributes, with another function; its
 * handle is what it was. Values, name and id of the former life are gone, and so is that it was asked to end; its priority
 * and its place are those that it had last (thrum_set_priority, thrum_migrate). Cheaper than a new one where handles are kept
 * in tables. After Argobots' ABT_thread_revive.
 *
 * From: ULT, external.
 * Errors: EBUSY it has not ended; EAGAIN no memory for a stack, or in mode OWN_TLS no kernel thread; EINVAL it or `fn` is
 * NULL. */
int thrum_revive(thrum_t thread, void *(*fn)(void *), void *arg);

/* Nobody will join it. The handle is used up. From: ULT, external. Errors: EINVAL it is NULL, somebody waits in a join,
 * or it is detached already. */
int thrum_detach(thrum_t thread);

/* Was it detached, or made without a handle? Of a thread that has not ended, as the caller, or that can still be joined.
 * From: ULT, external. */
bool thrum_is_detached(thrum_t thread);

/* Lets others run. Does nothing on an external kernel thread. From: anywhere. */
void thrum_yield(void);

/* The caller's handle; NULL on an external kernel thread. From: ULT, external. */
thrum_t thrum_self(void);

/* Waits until somebody calls thrum_resume for it; at once if that has happened since the last time.
 * From: ULT. Errors: EPERM an external kernel thread, a tasklet, or a scheduler. After Argobots' ABT_self_suspend and
 * ABT_thread_resume; that a resume may come first, after Java's LockSupport. */
int thrum_suspend(void);

/* As thrum_suspend, but no longer than until then (ns, CLOCK_MONOTONIC; <thrum/time.h>): ETIMEDOUT, and a resume that comes
 * later is for the next time. With a moment that has passed it does not wait. From and errors: as thrum_suspend. */
int thrum_suspend_until(uint64_t moment);

/* From: ULT, external. Errors: EINVAL it is NULL; ESRCH after thrum_fini. */
int thrum_resume(thrum_t thread);

/* Resumes a thread that is suspended and lets it run in the caller's place, on the same worker and before all that are
 * ready; the caller goes on later. That needs that whoever runs the caller may run the thread: it may run on any worker, is
 * bound to the caller's, or has the caller's pool. Otherwise, also where the caller is no ULT, or the thread is not
 * suspended, this is thrum_resume, and the caller goes on at once: where one waits that is ready already nobody knows.
 * From: ULT, external. Errors: as thrum_resume. After Argobots' ABT_self_yield_to. */
int thrum_switch_to(thrum_t thread);

/* --- ending from within, and from outside --------------------------------------------------------------- */

/* Ends the caller, as a return of its function with `result` would, from however deep: C++ destructors, cleanups and
 * destructors of values run. pthread_exit or thrd_exit called by a ULT is this. A catch (...) on the way has to throw again; a
 * function that is noexcept ends the process, as with pthread_exit. After POSIX.
 *
 * From: a ULT that was spawned. A tasklet, or the thread that called thrum_init: one line, and abort, after streams have been
 * flushed. On an external kernel thread it is pthread_exit. The workers of a program that never called thrum_init stay after
 * that of main: the process ends by exit only. */
void thrum_exit(void *result) __attribute__((noreturn));

/* The same; `heir`, a thread that is suspended, is resumed and runs next in the caller's place, where thrum_switch_to could
 * let it, unless somebody who may run there waits for the caller's end: then he is first, and the heir is ready. So it
 * is if the caller stands on a stack of the user's own. With NULL it is thrum_exit. From: as thrum_exit. After Argobots' ABT_self_exit_to. */
void thrum_exit_to(void *result, thrum_t heir) __attribute__((noreturn));

/* `fn(arg)` runs when the caller ends before thrum_cleanup_pop, the last one first; or there, if `run` is not 0. The two
 * stand in one block, as with pthread_cleanup_push of POSIX. From: ULT; on an external kernel thread only the pop runs
 * it. */
struct thrum_cleanup {
    void (*fn)(void *arg);
    void *arg;
    struct thrum_cleanup *outer;
};
void thrum_cleanup_enter(struct thrum_cleanup *cleanup);
void thrum_cleanup_leave(int run); /* the newest */
#define thrum_cleanup_push(fn, arg)                                                                          \
    {                                                                                                        \
        struct thrum_cleanup thrum_cleanup_named(__LINE__) = {(fn), (arg), 0};                               \
        thrum_cleanup_enter(&thrum_cleanup_named(__LINE__))
#define thrum_cleanup_pop(run)                                                                               \
    thrum_cleanup_leave(run);                                                                                \
    }
#define thrum_cleanup_named(line)  thrum_cleanup_named_(line)
#define thrum_cleanup_named_(line) thrum_cleanup_##line

/* Asks a thread to end with the result THRUM_CANCELED, as by thrum_exit. It does so where it waits: in thrum_join,
 * thrum_sleep, thrum_suspend, and in waits for conditions (with the mutex taken again), events, latches, eventuals,
 * futures, semaphores, channels and any of several, each also with a deadline; and at thrum_testcancel. Not in waits for
 * mutexes, rwlocks and barriers, and not where it would not have to wait. Returns without waiting for that.
 *
 * From: ULT, external; while the handle is good. Errors: EINVAL it is NULL; ENOTSUP not made with THRUM_SPAWN_CANCELLABLE;
 * ESRCH after thrum_fini. After deferred
 * cancellation of POSIX (XSH 2.9.5). */
int thrum_cancel(thrum_t thread);
#define THRUM_CANCELED ((void *)-1)

/* Ends the caller if it was asked to. From: anywhere. */
void thrum_testcancel(void);

/* With 0 the caller does not end until this is called with 1, to begin with it does. What it was. From: ULT. */
int thrum_set_cancel(int enabled);

/* --- moving, and telling apart ------------------------------------------------------------------------ */

/* From when it next waits, yields or is woken, the thread runs on this worker only, in no pool; THRUM_ANY_WORKER: on
 * any. The caller itself moves at once.
 *
 * From: ULT, external. Errors: EINVAL there is no such worker, or pool; EBUSY it is bound to a worker, and so only itself
 * may move it; EPERM a tasklet, a scheduler, or the thread that
 * called thrum_init, which stays where it is. After Argobots' ABT_thread_migrate_to_xstream and _to_pool. */
int thrum_migrate(thrum_t thread, unsigned worker);
int thrum_migrate_to_pool(thrum_t thread, thrum_pool_t pool);

/* No two threads of a process have the same; never 0, which is that of NULL. From: ULT, external. */
uint64_t thrum_id(thrum_t thread);

/* "" until it is set. From: ULT, external. Errors: EINVAL it or the name is NULL; ERANGE more than THRUM_NAME_SIZE - 1 bytes. */
int thrum_set_name(thrum_t thread, const char *name);
void thrum_get_name(thrum_t thread, char name[THRUM_NAME_SIZE]);

/* For priority pools and mutexes, from when it next comes to one. From: ULT, external; while the handle is good. Errors:
 * EINVAL more than THRUM_PRIORITY_MAX. */
int thrum_set_priority(thrum_t thread, unsigned priority);
unsigned thrum_priority(thrum_t thread);

/* How much of its stack has been used so far at the most, in bytes up to a page, and how large that is; an upper bound
 * unless it was made with THRUM_SPAWN_MEASURED, as others may have used the stack before. 0 and 0: it has none now.
 * From: ULT, external; while the handle is good. Errors: ESRCH it has ended; ENOMEM its stack is just given back. */
int thrum_stack_used(thrum_t thread, size_t *used, size_t *size);

/* --- seeing inside ------------------------------------------------------------------------------------ */

/* Writes to the file descriptor what all workers and threads are at: each thread's state, what it waits for and who has
 * that, its worker or pool, priority, stack use and function; and threads that wait for each other, in a cycle of owners
 * and joiners, as such. `most` threads at most, 0: all. The others go on meanwhile: what is told is true of each by
 * itself. Of its own stack it needs 16 KiB. `thrum ps` tells the same of another process, with names and backtraces.
 *
 *     static void on_quit(int signal) {
 *         (void)signal;
 *         thrum_dump(2, 1000);
 *     }
 *
 * From: anywhere, also signal handlers. Errors: ESRCH no runtime; EPERM the kernel does not let the process read its
 * memory by process_vm_readv(2), as in some sandboxes; those of write(2). After what the Go runtime does on SIGQUIT. */
int thrum_dump(int file, size_t most);

/* --- values of one's own ------------------------------------------------------------------------------ */

/* As pthread_key_create and so on, but of ULTs. From: ULT; create and delete also external. A destructor is called
 * when a thread ends with a value that is not NULL, up to four times if it sets one again.
 * Errors: EAGAIN there are THRUM_KEYS_MAX; EINVAL there is no such key; EPERM an external kernel thread; ENOMEM. */
typedef unsigned thrum_key_t;
enum { THRUM_KEYS_MAX = 128 };
int thrum_key_create(thrum_key_t *key, void (*destructor)(void *));
int thrum_key_delete(thrum_key_t key);
int thrum_key_set(thrum_key_t key, const void *value);
void *thrum_key_get(thrum_key_t key); /* NULL: none */

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#include "thrum/sync.h"
#include "thrum/time.h"

#endif
