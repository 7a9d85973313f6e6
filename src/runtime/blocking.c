// SPDX-License-Identifier: Apache-2.0
/* See blocking.h. */
#include "runtime/blocking.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "base/container_of.h"
#include "base/misuse.h"
#include "inspect/image.h"
#include "os/clock.h"
#include "os/futex.h"
#include "os/lock.h"
#include "os/memory.h"
#include "os/thread.h"
#include "runtime/places.h"
#include "sched/time/timed_wait.h"
#include "sched/worker.h"
#include "thrum/worker.h"

struct work {
    void *(*fn)(void *);
    void *arg; /* the result, once it has returned */
    int error; /* errno, before and after */
    uint64_t float_control;
};

/* A kernel thread of the pool, in memory of its own. */
struct server {
    uint32_t woken; /* under lock, but for its own read of it: off the list, with work or to end */
    uint32_t held;  /* of a thread created for a call, 1: the caller has not announced itself yet */
    bool is_to_end;
    struct work work;
    struct call *call; /* under lock: the call whose result this is; NULL: none any more */
    struct server *newer, *older;
};

/* On the stack of its caller, which waits. */
struct call {
    struct work work;
    struct server *server; /* under lock, once it is at work; NULL: it has left the list, and may be gone */
    struct timed_wait timed_wait;
    bool is_given_up;
};

uint64_t blocking_keep_ns = UINT64_C(10000000000);

static struct {
    struct lock lock;
    struct server *newest;
    uint32_t
        threads; /* that have not ended; changed under lock (count_locked), the stopping thread sleeps on it */
    bool stopping;
    bool one_ended; /* this one, and has not been joined */
    pthread_t ended;
    uint32_t generation; /* of processes: forks on the way here */
} pool;

/* --- the list ----------------------------------------------------------------------------------------- */

static void count_locked(uint32_t threads) {
    store_relaxed(&pool.threads, threads);
    store_relaxed(&inspect_blocking.threads, threads);
}

static void push_locked(struct server *server) {
    store_relaxed(&inspect_blocking.idle, inspect_blocking.idle + 1);
    server->older = pool.newest;
    if (pool.newest != NULL)
        pool.newest->newer = server;
    pool.newest = server;
}

static void take_off_locked(struct server *server) {
    store_relaxed(&inspect_blocking.idle, inspect_blocking.idle - 1);
    if (server->newer != NULL)
        server->newer->older = server->older;
    else
        pool.newest = server->older;
    if (server->older != NULL)
        server->older->newer = server->newer;
    server->newer = server->older = NULL;
}

static void give_work(struct server *server, struct call *call) {
    server->work = call->work;
    server->call = call;
    call->server = server;
}

/* Wakes it; from here on it may be gone: see unit_wake_elsewhere for why it may be woken nevertheless. */
static void send_locked(struct server *server) {
    take_off_locked(server);
    store_release(&server->woken, 1); /* pairs with next_work: the work is there */
}

static bool send_to_newest(struct call *call) {
    lock_acquire(&pool.lock);
    struct server *server = pool.newest;
    if (server != NULL) {
        give_work(server, call);
        send_locked(server);
    }
    lock_release(&pool.lock);
    if (server != NULL)
        futex_wake(&server->woken, 1);
    return server != NULL;
}

/* --- a thread ----------------------------------------------------------------------------------------- */

/* False: it has been given a call meanwhile. */
static bool give_up_waiting(struct server *self) {
    lock_acquire(&pool.lock);
    bool listed = !self->woken;
    if (listed)
        take_off_locked(self);
    lock_release(&pool.lock);
    return listed;
}

/* False: it must end. */
static bool next_work(struct server *self) {
    struct timespec end = timer_spec(timer_now() + blocking_keep_ns);
    lock_acquire(&pool.lock);
    bool stopping = pool.stopping;
    store_relaxed(&self->woken, 0);
    if (!stopping)
        push_locked(self);
    lock_release(&pool.lock);
    if (stopping)
        return false;
    while (!load_acquire(&self->woken)) /* pairs with send_locked */
        if (futex_wait_until(&self->woken, 0, CLOCK_MONOTONIC, &end) == -ETIMEDOUT && give_up_waiting(self))
            return false;
    return !self->is_to_end;
}

/* A caller gives up under the lock: so either finds that the other has gone. */
static struct call *take_call(struct server *self) {
    lock_acquire(&pool.lock);
    struct call *call = self->call;
    self->call = NULL;
    if (call != NULL)
        call->server = NULL;
    lock_release(&pool.lock);
    return call;
}

/* On the stack of a thread of the pool while fn runs. */
struct attempt {
    uint32_t generation;
    bool has_returned;
};

/* Its caller would wait for ever. In the child of a fork that fn called there is none. */
static void expect_return(const struct attempt *attempt) {
    if (!attempt->has_returned && pool.generation == attempt->generation)
        misuse_end("thrum_blocking: the function must return, and not end its kernel thread (pthread_exit, "
                   "thrum_exit, cancellation)");
}

static void *call_fn(const struct work *work) {
    __attribute__((cleanup(expect_return))) struct attempt attempt = {pool.generation, false};
    void *result = work->fn(work->arg);
    attempt.has_returned = true;
    return result;
}

/* False: this is the child of a fork that fn called, where no thread waits for the result. */
static bool do_work(struct server *self) {
    uint32_t generation = pool.generation;
    struct work work = self->work;
    arch_float_control_set(work.float_control);
    errno = work.error;
    work.arg = call_fn(&work);
    if (pool.generation != generation)
        return false;
    work.error = errno;
    struct call *call = take_call(self);
    if (call != NULL) {
        call->work = work;
        enter();
        unit_wake(NULL, call->timed_wait.unit);
        leave();
    }
    return true;
}

/* Its last act but to return. */
static void end(struct server *self) {
    lock_acquire(&pool.lock);
    bool one_ended = pool.one_ended;
    pthread_t ended = pool.ended;
    pool.one_ended = true;
    pool.ended = pthread_self();
    count_locked(pool.threads - 1);
    bool stopping = pool.stopping;
    lock_release(&pool.lock);
    munmap(self, sizeof *self);
    if (stopping)
        futex_wake(&pool.threads, INT_MAX);
    if (one_ended)
        pthread_join(ended, NULL);
}

/* As the only thread of its process, after a fork, its return is an exit (pthread_exit(3)). */
static void *thread_main(void *arg) {
    struct server *self = arg;
    if (load_acquire(
            &runtime.open)) /* else its creator is bound to no place of a worker's, and one may just begin */
        places_roam();
    while (load_acquire(&self->held)) /* pairs with call_elsewhere: its caller has announced itself */
        futex_wait(&self->held, 1);
    do
        if (!do_work(self))
            return NULL;
    while (next_work(self));
    end(self);
    return NULL;
}

static void count_thread(int32_t by) {
    enter();
    lock_acquire(&pool.lock);
    count_locked(pool.threads + (uint32_t)by);
    lock_release(&pool.lock);
    leave();
}

/* With this call, which it begins once it is no longer held. */
static int thread_new(struct call *call) {
    pthread_t handle;
    struct server *server = (struct server *)(void *)memory_map(sizeof *server, 0);
    if (server == NULL)
        return EAGAIN;
    give_work(server, call);
    server->held = 1;
    count_thread(1);
    int error = thread_make_quiet(&handle, 0, thread_main, server);
    if (error != 0) {
        count_thread(-1);
        munmap(server, sizeof *server);
    }
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

static bool give_up(struct timed_wait *timed_wait) {
    struct call *call = container_of(timed_wait, struct call, timed_wait);
    lock_acquire(&pool.lock);
    struct server *server = call->server;
    if (server != NULL) {
        server->call = NULL;
        call->server = NULL;
        call->is_given_up = true;
    }
    lock_release(&pool.lock);
    return server != NULL;
}

/* A new thread is created while the caller may still be preempted, so before it announces itself. */
static int call_elsewhere(struct call *call, uint64_t deadline) {
    struct worker *worker = enter();
    if (__builtin_expect(worker != NULL && is_in_region(), 0))
        unit_waits_in_region(
            AWAITS_CALL); /* later the call may be over, and nothing would say what it waited for */
    call->timed_wait.unit = unit_self(worker);
    call->timed_wait.give_up = give_up;
    call->timed_wait.timer.deadline = deadline;
    unit_await_until(call->timed_wait.unit, AWAITS_CALL, NULL, deadline);
    if (!send_to_newest(call)) {
        unit_await_no_more(call->timed_wait.unit);
        leave();
        int error = thread_new(call);
        if (error != 0)
            return error;
        worker = enter();
        unit_await_until(call->timed_wait.unit, AWAITS_CALL, NULL, deadline);
        struct server *server = call->server;
        store_release(&server->held, 0); /* pairs with thread_main */
        futex_wake(&server->held, 1);
    }
    unit_block_timed(worker, &call->timed_wait);
    leave();
    return call->is_given_up ? ETIMEDOUT : 0;
}

int thrum_blocking_until(void *(*fn)(void *), void *arg, void **result, uint64_t deadline) {
    if (is_null(fn))
        return EINVAL;
    struct call call = {
        .work = {.fn = fn, .arg = arg, .error = error_here(), .float_control = arch_float_control()}};
    if (worker_here() == NULL && deadline == TIMER_NEVER)
        call.work.arg = fn(arg);
    else if (!unit_here_may_wait())
        return EPERM;
    else {
        int error = call_elsewhere(&call, deadline);
        if (error != 0)
            return error;
        set_error_here(call.work.error);
    }
    if (result != NULL)
        *result = call.work.arg;
    return 0;
}

int thrum_blocking(void *(*fn)(void *), void *arg, void **result) {
    return thrum_blocking_until(fn, arg, result, TIMER_NEVER);
}

/* --- life --------------------------------------------------------------------------------------------- */

static void tell_all_to_end(void) {
    lock_acquire(&pool.lock);
    pool.stopping = true;
    for (struct server *server; (server = pool.newest) != NULL;) {
        server->is_to_end = true;
        send_locked(server);
        futex_wake(&server->woken, 1);
    }
    lock_release(&pool.lock);
}

void blocking_stop(void) {
    uint32_t threads;
    tell_all_to_end();
    while ((threads = load_relaxed(&pool.threads)) != 0)
        futex_wait(&pool.threads, threads);
    lock_acquire(&pool.lock); /* after the last of them: what it wrote is seen */
    bool one_ended = pool.one_ended;
    pool.one_ended = false;
    pool.stopping = false; /* external threads may call also without a runtime */
    lock_release(&pool.lock);
    if (one_ended)
        pthread_join(pool.ended, NULL);
}

/* Threads that slept, or were at work, do not exist here. */
void blocking_fork_child(void) {
    lock_reset(&pool.lock);
    pool.newest = NULL;
    count_locked(0);
    inspect_blocking.idle = 0;
    pool.stopping = pool.one_ended = false;
    pool.generation++;
}
