// SPDX-License-Identifier: Apache-2.0
/* libthrum: user-level threads that cost nanoseconds, a million of them in one process.
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
 * Threads here are user-level threads (ULTs). Each has a stack of its own; a few *workers* run them. A worker is a kernel
 * thread that thrum_init creates, by default one for each CPU that the process may use. An idle worker steals work from
 * another one, and sleeps when there is none.
 *
 * CALLING CONTEXTS. "ULT" is a thread created by thrum_spawn, or the thread that called thrum_init; a tasklet counts as
 * one where nothing waits. "External" is any other kernel thread of the process. "From:" names the contexts in which a
 * function may be called. Signal handlers may call a function only where it says so.
 *
 * ERRORS. Functions return 0 or a positive errno value, as pthreads do; errno is not touched. A NULL handle, object,
 * function or result pointer that is required is EINVAL everywhere. Functions that return something else return 0, NULL
 * or "" then; where that would go unnoticed (thrum_mutex_lock) they print one line and abort. After thrum_fini, existing
 * handles give ESRCH until the next runtime starts; using them after that is undefined.
 *
 * THREAD-LOCAL VARIABLES (errno among them) belong to the kernel thread. A ULT that waits may resume on another kernel
 * thread: its thread-locals then have other values, and the compiler may have kept their old addresses. Use them between
 * two calls of this library, not across one. Only errno is safe from the compiler, because this header redefines its
 * macro (<thrum/errno.h>; define THRUM_PLAIN_ERRNO to avoid that). What a *preempted* thread keeps of its thread-locals
 * depends on its mode (<thrum/preempt.h>): by default all of them.
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

/* A field that is 0 takes the value of its environment variable, or else the default. */
struct thrum_config {
    /* THRUM_WORKERS; default: the CPUs that the process may use (affinity, control group). */
    unsigned workers;
    /* Bytes; THRUM_STACK_SIZE; default 64 KiB. For threads whose attributes do not set one; rounded as there. */
    size_t stack_size;
    struct thrum_preempt_config preempt; /* <thrum/preempt.h> */
    uint64_t reserved[4];                /* must be 0; later versions read 0 as today's behaviour */
};

/* Starts the workers. The caller becomes a ULT that is bound to the first worker and stays on its own kernel thread. (For
 * the exception see "Waiting in the kernel" in thrum-preemption(7).) `config` may be NULL.
 *
 * A program that never calls this gets workers at its first thrum_spawn, each on a new kernel thread; they stay until the
 * process ends.
 *
 * A child of fork has no runtime. The thread that called fork, a ULT or not, continues there as an external one. It may
 * call thrum_init or thrum_spawn to start a new runtime. The parent's other threads do not exist in the child. Objects
 * that they hold or wait for (<thrum/sync.h>) must be initialised again before use. If a ULT or a tasklet continues in the
 * child, the return of its function ends the child with exit code 0.
 *
 * Load the library at program start, linked or preloaded. A library loaded later by dlopen comes behind the C library in
 * symbol lookup. Then pthread_exit in a ULT is the C library's, which is detected, reported in one line, and aborts. And
 * pthread_getattr_np describes the kernel thread's stack.
 *
 * From: an external kernel thread, while no runtime is running.
 * Errors: EBUSY a runtime is running that no library has started (thrum_acquire); EINVAL config->workers is more than 1024, config->stack_size is more than 1 GiB, a
 * value in config->preempt is invalid, config->reserved is not 0, or a THRUM_ environment variable that is needed is
 * invalid (one line on stderr says which); ENOMEM no memory; EAGAIN the system grants no kernel thread, or no timer or
 * signal for preemption. */
int thrum_init(const struct thrum_config *config);

/* Stops the workers and frees all stacks. Join all threads first: a thread that has not ended never runs again, and a
 * thread that waits for it waits for ever. Objects that such threads hold or wait for must be initialised again before
 * use; what wakes such a thread ends the process with a line. Pools are empty afterwards; destroy those with threads.
 *
 * A worker stops when the thread that it runs waits, yields or ends. So this call blocks while a thread computes without
 * doing any of these, for ever if the thread never does. Likewise for a thread with a kernel thread of its own
 * (thrum_kthread_lock): this call blocks until that waits in this library or ends, also while it blocks in the kernel, and then
 * until the destructors have run that its kernel thread has. No other kernel thread may be inside a call of this library
 * meanwhile.
 *
 * From: the thread that called thrum_init.
 * Errors: EPERM the caller is another thread. */
int thrum_fini(void);

/* For libraries and plug-ins that use this one, whatever the program does:
 *
 *     static int plugin_open(void) {
 *         return thrum_acquire(); // from a static constructor, too
 *     }
 *
 *     static void plugin_close(void) {
 *         thrum_release();
 *     }
 *
 * thrum_acquire makes sure that there is a runtime: the program's, or if there is none one by default, whose workers all have
 * kernel threads of their own. It is counted: until as many calls of thrum_release the runtime does not end.
 *
 * The program may call thrum_init before or after. If a library has started the runtime, thrum_init joins it: the caller becomes
 * a ULT that is bound to a worker of its own. config->workers applies, as workers are added or stopped; what else in `config`
 * differs from the runtime does not, and one line on stderr says so. (The environment applies in both cases.)
 *
 * thrum_fini while a library holds the runtime returns 0 and ends nothing: the workers stay, and the caller remains a ULT. The
 * last thrum_release ends the runtime then, if the thread that called thrum_init makes it; else the workers stay until the
 * process ends. A child of fork has no runtime, and no library holds one.
 *
 * From: ULT, external; not while another thread is in thrum_fini. Errors of thrum_acquire: as thrum_init, but not EBUSY; of
 * thrum_release: EINVAL no call of thrum_acquire is left. After CoInitialize of COM, and SDL_InitSubSystem. */
int thrum_acquire(void);
int thrum_release(void);

/* The number of workers; 0 without a runtime. Worker numbers have gaps after workers were stopped (<thrum/worker.h>).
 * From: anywhere, also signal handlers. */
unsigned thrum_workers(void);

/* A number that identifies the running runtime, different for each runtime of the process; 0 without one. A handle is
 * valid only while this is what it was when the thread was created. From: anywhere, also signal handlers. */
uint64_t thrum_runtime_id(void);

/* The number of workers that thrum_init starts by default. 0: THRUM_WORKERS is invalid; one line on stderr says so.
 * From: anywhere. */
unsigned thrum_workers_default(void);

/* --- threads ------------------------------------------------------------------------------------------ */

typedef struct thrum_unit *thrum_t;
typedef struct thrum_pool *thrum_pool_t; /* <thrum/pool.h> */

/* Attributes of a thread to be created. Opaque; set by the functions below. */
typedef struct {
    uint64_t opaque[8];
} thrum_attr_t;

enum {
    /* The new thread is enqueued and its creator continues. Without this flag the new thread runs at once, and its creator
     * is enqueued, where an idle worker may steal it. Some creators always continue: an external kernel thread, a tasklet,
     * a thread bound to a worker (such as the thread that called thrum_init) and a thread that has a pool. A creator that
     * was just stolen also keeps running for its next few spawns. Set this flag where one thread creates many that each do
     * little. */
    THRUM_SPAWN_QUEUED = 1,
    /* A tasklet: runs to completion on whatever stack is current, like a called function. It has the caller's
     * floating-point control state (such as the rounding mode), and must leave it unchanged. It costs less, and needs no
     * memory but its descriptor. It must not call anything that may wait, and can be neither cancellable nor measured. */
    THRUM_SPAWN_TASKLET = 2,
    /* thrum_cancel may end it. */
    THRUM_SPAWN_CANCELLABLE = 4,
    /* thrum_stack_used is exact to a page: the stack starts without memory. Costs some microseconds. */
    THRUM_SPAWN_MEASURED = 8,
    /* As THRUM_SPAWN_CANCELLABLE, and waits for mutexes, rwlocks, barriers and thrum_once_call are cancellation points, too. The
     * thread ends without the lock. */
    THRUM_SPAWN_CANCEL_LOCKS = 16,
    /* The thread has a kernel thread of its own, as if it began with a call of thrum_kthread_lock. Not for tasklets. */
    THRUM_SPAWN_OWN_KTHREAD = 32,
};

enum { THRUM_PRIORITY_MAX = 63, THRUM_NAME_SIZE = 16, THRUM_STACK_MIN = 16384 };

#define THRUM_ANY_WORKER (~0U)

/* After pthread_attr_t of POSIX; there is nothing to destroy. A setter that returns an error leaves the attributes
 * unchanged. From: anywhere, all of them. */
void thrum_attr_init(thrum_attr_t *attr);
/* Errors: EINVAL not an or of the flags above. */
int thrum_attr_set_flags(thrum_attr_t *attr, unsigned flags);
/* The minimum size in bytes, rounded up to a power of two of at least 16 KiB. Default: config->stack_size. All sizes cost
 * the same; memory is used only for pages that are touched. Errors: EINVAL more than 1 GiB.
 *
 * Below each stack is a guard of 72 KiB of address space, which uses no memory. A function with more than 64 KiB of local
 * arrays can step over it unless compiled with -fstack-clash-protection. thrum's pkg-config and CMake packages set that
 * option where the compiler has it. */
int thrum_attr_set_stack_size(thrum_attr_t *attr, size_t size);

/* Runs the thread on the user's memory: `size` bytes starting at `memory`. It must stay valid until the thread has been
 * joined (for ever, if the thread is detached). There is no guard below it. NULL and 0: a stack of the library's again.
 * Not for thrum_spawn_many. Errors: EINVAL less than THRUM_STACK_MIN, or beyond the end of the address space. */
int thrum_attr_set_stack(thrum_attr_t *attr, void *memory, size_t size);

/* Binds the thread to this worker (numbered from 0; <thrum/worker.h>). THRUM_ANY_WORKER, the default: any worker runs it.
 * Excludes a pool, and is not for tasklets. Errors: EINVAL the number is out of range; if no such worker exists,
 * thrum_spawn returns EINVAL. */
int thrum_attr_set_worker(thrum_attr_t *attr, unsigned worker);

/* 0, the default, to THRUM_PRIORITY_MAX, the highest. Used by priority pools (<thrum/pool.h>) and mutexes (<thrum/sync.h>);
 * the workers' own run queues ignore it. Errors: EINVAL more. */
int thrum_attr_set_priority(thrum_attr_t *attr, unsigned priority);
/* For deadline pools: any number; the smallest runs first. */
void thrum_attr_set_deadline(thrum_attr_t *attr, uint64_t deadline);
/* Whether the thread is preempted, and what it keeps when it is: enum thrum_preempt_mode. Default: the runtime's mode. In a
 * runtime without preemption (THRUM_PREEMPT_NONE), thrum_spawn returns EINVAL for any other mode; and also where the runtime
 * lacks what the mode needs: KLT is for runtimes of mode KLT only, LEND and OWN_TLS for those of either. Errors: EINVAL no
 * such mode. */
int thrum_attr_set_preempt(thrum_attr_t *attr, unsigned mode);
/* The time slice, in microseconds. 0: the slice of the scheduler that runs the thread (thrum_sched_set_slice), or else the
 * runtime's. Errors: EINVAL less than THRUM_SLICE_MIN, or more than THRUM_SLICE_MAX. */
int thrum_attr_set_slice(thrum_attr_t *attr, unsigned slice);
/* The pool in which the thread waits while it is runnable. NULL, the default: the run queue of the worker that makes it
 * runnable. */
void thrum_attr_set_pool(thrum_attr_t *attr, thrum_pool_t pool);

/* Creates a thread that runs fn(arg). `attr` may be NULL. If `thread` is NULL the new thread is detached. *thread is set
 * when this returns; the new thread, which may run earlier, calls thrum_self instead.
 *
 * From: ULT, external.
 * Errors: EAGAIN no memory for a descriptor or a stack, no guard page left (vm.max_map_count), or in mode OWN_TLS or with
 * THRUM_SPAWN_OWN_KTHREAD no kernel thread; EINVAL `fn` is NULL, or `attr` names a worker that does not exist, names both a
 * worker and a pool, has something that a tasklet cannot have, or asks for preemption that the runtime does not have. The first
 * call in a program that never called thrum_init also has the errors of thrum_init.
 *
 * Running the child first, while its creator may be stolen, is after Frigo, Leiserson and Randall, "The Implementation of
 * the Cilk-5 Multithreaded Language", PLDI 1998. Tasklets are after Argobots. */
int thrum_spawn(thrum_t *thread, const thrum_attr_t *attr, void *(*fn)(void *), void *arg);

/* Creates `count` threads, thread i with fn(args + i * stride), and sets threads[0 .. count). The range is halved
 * recursively so that idle workers help; the call waits for these helpers, and is no cancellation point.
 *
 * From: ULT, external.
 * Errors: as thrum_spawn; EINVAL `attr` has a stack of the user's; EPERM the caller is a tasklet or a scheduler. After an error all threads that had been created have
 * been joined, and no handle is valid. After Argobots' ABT_thread_create_many. */
int thrum_spawn_many(size_t count, thrum_t *threads, const thrum_attr_t *attr, void *(*fn)(void *),
                     void *args, size_t stride);

/* Waits until the thread has ended; *result is what its function returned. This uses up the handle, as does the end of a
 * detached thread: using it afterwards is undefined. (A second join or detach returns EINVAL until the descriptor is
 * reused for another thread.) Joining a thread while another thread joins or detaches it is undefined too, but EINVAL if
 * that other one already waits.
 *
 * From: ULT, external.
 * Errors: EDEADLK it is the caller; EINVAL it is NULL, another thread waits for its end, or it is detached; ESRCH there is no
 * runtime that could run it to its end, as in the child of a fork, or thrum_fini was called (which uses up all handles);
 * EPERM it has not ended, and the caller is a tasklet or a scheduler. After pthread_join of POSIX. */
int thrum_join(thrum_t thread, void **result);

/* As thrum_join, but the handle stays valid for one more call of thrum_revive, thrum_join (which then does not wait) or
 * thrum_detach. From and errors: as thrum_join. After Argobots' ABT_thread_join. */
int thrum_join_keep(thrum_t thread, void **result);

/* Runs a thread that has ended and was not joined once more, with another function and the same attributes. The handle
 * stays the same. Values of keys, name, id and a pending cancellation are reset; priority and place are what they last were
 * (thrum_set_priority, thrum_migrate). Cheaper than a new thread where handles are kept in tables.
 *
 * From: ULT, external.
 * Errors: EBUSY it has not ended; EAGAIN no memory for a stack, or no kernel thread where it needs one (thrum_spawn); EINVAL it
 * or `fn` is NULL. After Argobots' ABT_thread_revive. */
int thrum_revive(thrum_t thread, void *(*fn)(void *), void *arg);

/* Detaches the thread: it will not be joined. Uses up the handle. From: ULT, external. Errors: EINVAL it is NULL, a thread
 * waits for it in a join, or it is detached already. After pthread_detach of POSIX. */
int thrum_detach(thrum_t thread);

/* True if the thread was detached, or created without a handle. `thread` must not have ended (as the caller has not), or
 * must still be joinable. From: ULT, external. */
bool thrum_is_detached(thrum_t thread);

/* Lets other threads run. Does nothing on an external kernel thread. From: anywhere. */
void thrum_yield(void);

/* The caller's handle; NULL on an external kernel thread. From: ULT, external. */
thrum_t thrum_self(void);

/* Waits until thrum_resume is called for the caller. Returns at once if that happened since the last suspension.
 * From: ULT. Errors: EPERM the caller is an external kernel thread, a tasklet or a scheduler. After Argobots'
 * ABT_self_suspend and ABT_thread_resume; that a resume may come first is after Java's LockSupport. */
int thrum_suspend(void);

/* As thrum_suspend, but at most until `deadline` (ns, CLOCK_MONOTONIC; <thrum/time.h>). Then it returns ETIMEDOUT, and a
 * later resume counts for the next suspension. A deadline that has passed does not wait. From and errors: as
 * thrum_suspend. */
int thrum_suspend_until(uint64_t deadline);

/* Resumes a thread that is suspended, or lets its next thrum_suspend return at once.
 * From: ULT, external. Errors: EINVAL it is NULL; ESRCH after thrum_fini. */
int thrum_resume(thrum_t thread);

/* Resumes a suspended thread and switches to it: it runs on the caller's worker before all other runnable threads, and the
 * caller is enqueued. This requires that the thread may run where the caller runs. It is bound to no worker and has no
 * pool, is bound to the caller's worker, or has the caller's pool. Otherwise, and where the caller is no ULT or the thread
 * is not suspended, this is thrum_resume and the caller continues at once. (A runnable thread that is in a queue cannot be
 * found there.) From: ULT, external. Errors: as thrum_resume. After Argobots' ABT_self_yield_to. */
int thrum_switch_to(thrum_t thread);

/* --- exit and cancellation ------------------------------------------------------------------------------ */

/* Ends the caller from any call depth, as if its function returned `result`. C++ destructors, cleanups and destructors of
 * key values run. pthread_exit and thrd_exit in a ULT do the same. A catch (...) on the way must rethrow; a noexcept
 * function on the way ends the process, as with pthread_exit. After POSIX.
 *
 * From: a ULT created by thrum_spawn. A tasklet, or the thread that called thrum_init: one line, streams are flushed, and
 * the process aborts. On an external kernel thread it is pthread_exit. In a program that never called thrum_init the workers
 * outlive pthread_exit of main: the process ends only by exit. */
void thrum_exit(void *result) __attribute__((noreturn));

/* As thrum_exit; `successor`, a suspended thread, is resumed and runs next in the caller's place, where thrum_switch_to
 * could switch to it. Two cases make it only runnable. A thread that joins the caller and may run there goes first; or
 * the caller runs on a stack of the user's. With a NULL `successor` it is thrum_exit. From: as thrum_exit. After Argobots'
 * ABT_self_exit_to. */
void thrum_exit_to(void *result, thrum_t successor) __attribute__((noreturn));

/* fn(arg) runs when the caller ends before thrum_cleanup_pop, the last pushed first; or at the pop, if `run` is not 0. Push
 * and pop must stand in the same block, as with pthread_cleanup_push of POSIX. From: ULT; on an external kernel thread
 * only the pop runs it. */
struct thrum_cleanup {
    void (*fn)(void *arg);
    void *arg;
    struct thrum_cleanup *outer;
};
void thrum_cleanup_enter(struct thrum_cleanup *cleanup);
void thrum_cleanup_leave(int run); /* the innermost */
#define thrum_cleanup_push(fn, arg)                                                                          \
    {                                                                                                        \
        struct thrum_cleanup thrum_cleanup_named(__LINE__) = {(fn), (arg), 0};                               \
        thrum_cleanup_enter(&thrum_cleanup_named(__LINE__))
#define thrum_cleanup_pop(run)                                                                               \
    thrum_cleanup_leave(run);                                                                                \
    }
#define thrum_cleanup_named(line)  thrum_cleanup_named_(line)
#define thrum_cleanup_named_(line) thrum_cleanup_##line

/* Asks a thread to end with the result THRUM_CANCELED, as by thrum_exit. It does so at cancellation points:
 * - thrum_testcancel;
 * - where it waits in thrum_join, thrum_sleep or thrum_suspend;
 * - where it waits for a condition (with the mutex locked again), an event, a latch, an eventual, a future, a semaphore,
 *   a channel, or any of several; each also with a deadline.
 * Waits for mutexes, rwlocks, barriers and thrum_once_call are none, unless the thread was created with
 * THRUM_SPAWN_CANCEL_LOCKS; nor are calls that do not have to wait. This call does not wait for the thread's end.
 *
 * From: ULT, external; while the handle is valid. Errors: EINVAL it is NULL; ENOTSUP it was created without
 * THRUM_SPAWN_CANCELLABLE; ESRCH after thrum_fini. After deferred cancellation of POSIX (XSH 2.9.5). */
int thrum_cancel(thrum_t thread);
#define THRUM_CANCELED ((void *)-1)

/* Ends the caller if it was asked to end. From: anywhere. */
void thrum_testcancel(void);

/* 0 defers cancellation of the caller until this is called with 1, the initial state. Returns the previous state.
 * From: ULT. */
int thrum_set_cancel(int enabled);

/* --- migration and identity --------------------------------------------------------------------------- */

/* Binds the thread to this worker (and takes it out of its pool), or with THRUM_ANY_WORKER to none; thrum_migrate_to_pool
 * moves it to this pool. This takes effect when the thread next waits, yields or is woken; for the caller itself at once.
 *
 * From: ULT, external. Errors: EINVAL there is no such worker, or pool; EBUSY it is bound to a worker, and so only itself may
 * move it; EPERM it is a tasklet, a scheduler, a thread with a kernel thread of its own, or the thread that called thrum_init,
 * which stays where it is. After Argobots' ABT_thread_migrate_to_xstream and _to_pool. */
int thrum_migrate(thrum_t thread, unsigned worker);
int thrum_migrate_to_pool(thrum_t thread, thrum_pool_t pool);

/* A kernel thread of its own for the caller: for what belongs to kernel threads and must stay the same between two calls.
 * Examples are an OpenGL context, a JVM's attachment, a garbage collector's roots, a CPU affinity, and a namespace.
 *
 *     static void *render(void *arg) {
 *         int error = thrum_kthread_lock();
 *         if (error != 0)
 *             return (void *)(intptr_t)error;
 *         cpu_set_t cpus;
 *         CPU_ZERO(&cpus);
 *         CPU_SET(0, &cpus);
 *         sched_setaffinity(0, sizeof cpus, &cpus); // this thread's alone, until the unlock
 *         thrum_event_wait(arg);                    // as in any other thread
 *         thrum_kthread_unlock();
 *         return NULL;
 *     }
 *
 * From the return of thrum_kthread_lock to that of as many calls of thrum_kthread_unlock, or to the thread's end:
 * - The caller runs on one kernel thread, which runs no other ULT. gettid(), the affinity, the scheduling policy, the signal mask
 *   and all else that the kernel has per thread are the caller's alone. So are pthread_self() and thread-local variables; in mode
 *   OWN_TLS these are what they were before. Else the thread-locals are those of a new kernel thread.
 * - It may block in the kernel, or compute, without holding up another ULT: the workers run the others, as many as before. It is
 *   on no worker (thrum_worker_self is -1), and not preempted, as the kernel shares the CPUs among kernel threads. A timer that
 *   it starts, and a thread that it spawns, is a worker's.
 * - All objects, joins and cancellation work between it and others. A wake-up costs what waking a kernel thread costs, some
 *   microseconds. thrum_yield does nothing.
 *
 * The kernel thread is new: with the affinity of the kernel thread that creates it (with THRUM_BIND: of the process when the
 * runtime started), and with all signals blocked but those of faults and of preemption, as on a worker. In between the caller
 * cannot be moved (thrum_migrate: EPERM). Afterwards it is where it was before: on any worker, on the worker that it is bound to,
 * or in its pool.
 *
 * The kernel thread ends when the caller leaves it, so nothing that was changed there reaches another thread. As it ends it runs
 * the destructors of its own thread-locals and pthread_key_t values; thrum_self() is NULL in them. thrum_kthread_unlock returns,
 * and the thread can be joined, when it has run
 * - those of C++ thread_local objects that were made before the unlock, and
 * - those of pthread_key_t values, but not for values that these destructors set again and again: two rounds of them are waited
 *   for. Without memory for a value of the library's own key none of them is.
 * In mode OWN_TLS the thread-locals are the caller's: their destructors run at its end, before it can be joined, and not at the
 * unlock. The kernel ends the kernel thread a little later: it may be seen in /proc, and have its namespaces, when these calls
 * have returned.
 *
 * On an external kernel thread both return 0 and do nothing: it has its own. The thread that called thrum_init has its own, too,
 * but its worker runs others there while it waits. A program whose main thread needs this calls thrum_acquire in place of
 * thrum_init. In a child of fork the caller is an external kernel thread.
 *
 * From: ULT, external. Errors of thrum_kthread_lock: EAGAIN no kernel thread, no memory or no pthread_key_t available; EPERM the
 * caller is a tasklet, a scheduler, a thread of Argobots' interface, or the thread that called thrum_init, or is in a region
 * (thrum_nopreempt_begin). Of thrum_kthread_unlock: EPERM it has none, or is in a region at its last unlock. After Go's
 * runtime.LockOSThread, whose calls nest, too. */
int thrum_kthread_lock(void);
int thrum_kthread_unlock(void);

/* A number that no other thread of the process has or had. Never 0, except for NULL. From: ULT, external. */
uint64_t thrum_id(thrum_t thread);

/* The name, "" until it is set. From: ULT, external. Errors: EINVAL the thread or the name is NULL; ERANGE more than
 * THRUM_NAME_SIZE - 1 bytes. */
int thrum_set_name(thrum_t thread, const char *name);
void thrum_get_name(thrum_t thread, char name[THRUM_NAME_SIZE]);

/* The priority for pools and mutexes, from the next time that the thread enters one. From: ULT, external; while the handle
 * is valid. Errors: EINVAL more than THRUM_PRIORITY_MAX. */
int thrum_set_priority(thrum_t thread, unsigned priority);
unsigned thrum_get_priority(thrum_t thread);

/* *used is the most that the thread has used of its stack so far, in bytes rounded up to pages; *size is the stack's size.
 * As earlier threads may have used the stack, *used is an upper bound. It is exact for threads created with
 * THRUM_SPAWN_MEASURED. Both are 0 while the thread has no stack.
 * From: ULT, external; while the handle is valid. Errors: ESRCH it has ended; ENOMEM its stack is being freed. */
int thrum_stack_used(thrum_t thread, size_t *used, size_t *size);

/* --- inspection --------------------------------------------------------------------------------------- */

/* Writes to the file descriptor what all workers and threads do. For each thread: its state, what it waits for and which
 * thread holds that, its worker or pool, priority, stack use and function. Cycles of owners and joiners that wait for each
 * other are reported as deadlocks. Prints at most `most` threads, 0: all. The others keep running: each line is true by
 * itself, but the lines are not one snapshot. Needs 16 KiB of the caller's stack. It uses one file descriptor at a time for
 * /proc/self/task/TID/status of each worker with ticks. The kernel thread sleeps for 2 ms before each cycle is reported, and
 * once before workers without ticks are. `thrum ps` reports the same of another process, with symbol names and backtraces.
 *
 *     static void on_quit(int signal) {
 *         (void)signal;
 *         thrum_dump(2, 1000);
 *     }
 *
 * From: anywhere, also signal handlers. Errors: ESRCH no runtime; EPERM the kernel does not let the process read its own
 * memory by process_vm_readv(2), as in some sandboxes; the errors of write(2). After the Go runtime's dump on SIGQUIT. */
int thrum_dump(int file, size_t most);

/* --- thread-specific values --------------------------------------------------------------------------- */

/* As pthread_key_create and so on, for ULTs. A destructor is called when a thread ends with a value that is not NULL, up to
 * four times if it sets one again. From: ULT; create and delete also external.
 * Errors: EAGAIN there are THRUM_KEYS_MAX keys; EINVAL no such key; EPERM the caller is an external kernel thread; ENOMEM. */
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
