// SPDX-License-Identifier: Apache-2.0
/* See blocking.h. */
#include "runtime/blocking.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>

#include "os/clock.h"
#include "os/futex.h"
#include "os/lock.h"
#include "os/thread.h"
#include "runtime/places.h"
#include "sched/worker.h"
#include "thrum/worker.h"

/* On the caller's stack, which waits. */
struct call {
    void *(*fn)(void *);
    void *arg; /* the result, once it has returned */
    int error; /* errno, before and after */
    uint32_t
        wait; /* 1: for a thread that was made for it, which sleeps here: the caller has not announced itself yet */
    uint64_t float_control;
    struct thrum_unit *caller;
};

/* A thread that has nothing to do; on its stack. */
struct idler {
    uint32_t woken;    /* under lock, but for its own look at it: off the list */
    struct call *call; /* then; NULL: it is to end */
    struct idler *newer, *older;
};

uint64_t blocking_keep_ns = UINT64_C(10000000000);

static struct {
    struct lock lock;
    struct idler *newest;
    uint32_t threads; /* that have not ended; changed under lock, who stops sleeps on it */
    bool stopping;
    bool one_ended; /* this one, and has not been joined */
    pthread_t ended;
    uint32_t generation; /* of processes: forks on the way here */
} pool;

/* --- the list ----------------------------------------------------------------------------------------- */

static void push_locked(struct idler *idler) {
    idler->older = pool.newest;
    if (pool.newest != NULL)
        pool.newest->newer = idler;
    pool.newest = idler;
}

static void take_off_locked(struct idler *idler) {
    if (idler->newer != NULL)
        idler->newer->older = idler->older;
    else
        pool.newest = idler->older;
    if (idler->older != NULL)
        idler->older->newer = idler->newer;
}

/* It is to be woken; from here on it may be gone: see unit_wake_elsewhere for why it may be woken nevertheless. */
static void send_locked(struct idler *idler, struct call *call) {
    take_off_locked(idler);
    idler->call = call;
    store_release(&idler->woken, 1);
}

static bool send_to_newest(struct call *call) {
    lock_acquire(&pool.lock);
    struct idler *idler = pool.newest;
    if (idler != NULL)
        send_locked(idler, call);
    lock_release(&pool.lock);
    if (idler != NULL)
        futex_wake(&idler->woken, 1);
    return idler != NULL;
}

/* --- a thread ----------------------------------------------------------------------------------------- */

/* False: it has been sent something meanwhile. */
static bool give_up(struct idler *self) {
    lock_acquire(&pool.lock);
    bool listed = !self->woken;
    if (listed)
        take_off_locked(self);
    lock_release(&pool.lock);
    return listed;
}

/* NULL: it is to end. */
static struct call *next_call(void) {
    struct idler self = {.woken = 0};
    struct timespec end = timer_spec(timer_now() + blocking_keep_ns);
    lock_acquire(&pool.lock);
    bool stopping = pool.stopping;
    if (!stopping)
        push_locked(&self);
    lock_release(&pool.lock);
    if (stopping)
        return NULL;
    while (!load_acquire(&self.woken))
        if (futex_wait_until(&self.woken, 0, CLOCK_MONOTONIC, &end) == -ETIMEDOUT && give_up(&self))
            return NULL;
    return self.call;
}

/* False: this is the child of a fork that it called, where nobody waits for it. */
static bool make(struct call *call) {
    uint32_t generation = pool.generation;
    while (load_acquire(&call->wait))
        futex_wait(&call->wait, 1);
    arch_float_control_set(call->float_control);
    errno = call->error;
    void *result = call->fn(call->arg);
    if (pool.generation != generation)
        return false;
    call->arg = result;
    call->error = errno;
    enter();
    unit_wake(NULL, call->caller);
    leave();
    return true;
}

/* Its last act but to return. */
static void end(void) {
    lock_acquire(&pool.lock);
    bool one_ended = pool.one_ended;
    pthread_t ended = pool.ended;
    pool.one_ended = true;
    pool.ended = pthread_self();
    store_relaxed(&pool.threads, pool.threads - 1);
    bool stopping = pool.stopping;
    lock_release(&pool.lock);
    if (stopping)
        futex_wake(&pool.threads, INT_MAX);
    if (one_ended)
        pthread_join(ended, NULL);
}

/* As the only thread of its process, after a fork, its return is an exit (pthread_exit(3)). */
static void *thread_main(void *arg) {
    places_roam();
    for (struct call *call = arg; call != NULL; call = next_call())
        if (!make(call))
            return NULL;
    end();
    return NULL;
}

static void count_thread(int32_t by) {
    enter();
    lock_acquire(&pool.lock);
    store_relaxed(&pool.threads, pool.threads + (uint32_t)by);
    lock_release(&pool.lock);
    leave();
}

static int thread_new(struct call *call) {
    pthread_t handle;
    count_thread(1);
    int error = thread_make_quiet(&handle, 0, thread_main, call);
    if (error != 0)
        count_thread(-1);
    return error;
}

/* --- calling ------------------------------------------------------------------------------------------ */

/* Not inlined: the compiler takes errno to be in the same place before and after a wait. */
static __attribute__((noinline)) int error_here(void) {
    return errno;
}

static __attribute__((noinline)) void set_error_here(int error) {
    errno = error;
}

/* A new thread is made where the caller may still be preempted, so before it announces itself. */
static int call_elsewhere(struct call *call) {
    struct worker *worker = enter();
    call->caller = worker->current;
    unit_await(call->caller, AWAITS_CALL, NULL);
    if (!send_to_newest(call)) {
        unit_await_no_more(call->caller);
        leave();
        call->wait = 1;
        int error = thread_new(call);
        if (error != 0)
            return error;
        worker = enter();
        unit_await(call->caller, AWAITS_CALL, NULL);
        store_release(&call->wait, 0);
        futex_wake(&call->wait, 1);
    }
    unit_block(worker, call->caller);
    leave();
    return 0;
}

int thrum_blocking(void *(*fn)(void *), void *arg, void **result) {
    struct call call = {.fn = fn, .arg = arg, .error = error_here(), .float_control = arch_float_control()};
    if (worker_here() == NULL)
        call.arg = fn(arg);
    else if (!unit_here_may_wait())
        return EPERM;
    else {
        int error = call_elsewhere(&call);
        if (error != 0)
            return error;
        set_error_here(call.error);
    }
    if (result != NULL)
        *result = call.arg;
    return 0;
}

/* --- life --------------------------------------------------------------------------------------------- */

void blocking_start(void) {
    pool.stopping = false;
}

static void tell_all_to_end(void) {
    lock_acquire(&pool.lock);
    pool.stopping = true;
    for (struct idler *idler; (idler = pool.newest) != NULL;) {
        send_locked(idler, NULL);
        futex_wake(&idler->woken, 1);
    }
    lock_release(&pool.lock);
}

void blocking_stop(void) {
    uint32_t threads;
    tell_all_to_end();
    while ((threads = load_acquire(&pool.threads)) != 0)
        futex_wait(&pool.threads, threads);
    lock_acquire(&pool.lock); /* after the last of them */
    bool one_ended = pool.one_ended;
    pool.one_ended = false;
    lock_release(&pool.lock);
    if (one_ended)
        pthread_join(pool.ended, NULL);
}

/* Those that slept, or were at work, are not here. */
void blocking_fork_child(void) {
    lock_reset(&pool.lock);
    pool.newest = NULL;
    pool.threads = 0;
    pool.one_ended = false;
    pool.generation++;
}
