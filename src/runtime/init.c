// SPDX-License-Identifier: Apache-2.0
/* Starting and stopping the workers. The thread that calls thrum_init becomes the first of them: what ran on it goes
 * on as a ULT that is bound to it, and its loop gets a stack of its own. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "context/annotate.h"
#include "os/clock.h"
#include "os/membarrier.h"
#include "os/signals.h"
#include "os/ticks.h"
#include "runtime/config.h"
#include "runtime/overflow.h"
#include "sched/keys.h"
#include "sched/pool.h"
#include "sched/scheduler.h"
#include "sched/timekeeper.h"
#include "sched/worker.h"
#include "thrum/thrum.h"

enum state { STOPPED, CHANGING, RUNNING };

static struct {
    uint32_t state; /* enum state; by cas from STOPPED or RUNNING to CHANGING */
    pthread_t *handles;
    struct thrum_unit primary; /* what ran on the thread that called thrum_init */
    bool joined_in;            /* ... and that there is such a one */
} runtime;

/* A worker's memory: its alternate signal stack, then itself. */
static size_t worker_bytes(void) {
    return overflow_stack_bytes() + ((sizeof(struct worker) + 4095) & ~(size_t)4095);
}

static char *memory_of(struct worker *worker) {
    return (char *)worker - overflow_stack_bytes();
}

static struct worker *worker_new(uint32_t id) {
    char *memory = mmap(NULL, worker_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    struct worker *worker = (struct worker *)(void *)(memory + overflow_stack_bytes());
    if (worker_init(worker, id) == 0)
        return worker;
    munmap(memory, worker_bytes());
    return NULL;
}

static void worker_delete(struct worker *worker) {
    worker_destroy(worker);
    munmap(memory_of(worker), worker_bytes());
}

/* Of the C++ runtime, if the program has one. It leads to thread-locals of the caller. */
struct exception_globals *__cxa_get_globals(void) __attribute__((weak));

/* By the kernel thread that is this worker, before it runs anything; and at its end. */
static void thread_begin(struct worker *worker) {
    if (__cxa_get_globals != NULL)
        worker->exceptions = __cxa_get_globals();
    ARCH_TLS_STORE(thrum_worker, worker);
    annotate_thread_begin(&worker->annotate);
    overflow_thread_begin(memory_of(worker));
}

static void thread_end(struct worker *worker) {
    overflow_thread_end(memory_of(worker));
    annotate_thread_end(&worker->annotate);
    ARCH_TLS_STORE(thrum_worker, NULL);
}

static void *run_loop(void *worker) {
    worker_loop(worker);
    return NULL;
}

/* Begins when all workers are there: they look at each other. */
static void *worker_thread(void *arg) {
    struct worker *worker = arg;
    thread_begin(worker);
    worker_loop(worker);
    thread_end(worker);
    return NULL;
}

/* The caller's kernel thread is worker 0. */
static int become_first(struct worker *worker) {
    worker->base.fn = run_loop;
    worker->base.arg = worker;
    worker->base.stack_class = STACK_CLASS_DEFAULT;
    worker->base.float_control = arch_float_control();
    store_relaxed(&worker->base.sp, UNIT_NEW);
    if (!unit_make_frame(worker, &worker->base))
        return ENOMEM;
    runtime.primary = (struct thrum_unit){.kind = UNIT_BOUND, .bound = worker, .escaped = true};
    worker->current = &runtime.primary;
    return 0;
}

/* Workers from `first` to before `end` have kernel threads of their own. */
static void stop(uint32_t first, uint32_t end) {
    store_release(&scheduler.stopping, 1);
    for (uint32_t i = first; i < end; i++)
        idle_wake_this(&scheduler.idle, &scheduler.workers[i]->parking);
    for (uint32_t i = first; i < end; i++)
        pthread_join(runtime.handles[i], NULL);
}

static void delete_workers(uint32_t count) {
    store_relaxed(&scheduler.count, 0);
    for (uint32_t i = 0; i < count; i++) {
        worker_delete(scheduler.workers[i]);
        scheduler.workers[i] = NULL;
    }
    if (runtime.handles != NULL)
        munmap(runtime.handles, WORKERS_MAX * sizeof *runtime.handles);
    runtime.handles = NULL;
    keys_fini();
    depot_destroy(&unit_depot);
    stack_destroy();
    overflow_stop();
}

static sigbits bit_of(int signal) {
    return UINT64_C(1) << (signal - 1);
}

/* Those that a fault raises: where they are blocked, the kernel ends the process past all handlers. */
static sigbits raised_by_faults(void) {
    return bit_of(SIGSEGV) | bit_of(SIGBUS) | bit_of(SIGFPE) | bit_of(SIGILL) | bit_of(SIGTRAP) |
           bit_of(SIGSYS);
}

/* Workers take no signals that are meant for the program: they are blocked, but for those that a fault raises. */
static int start_threads(uint32_t first, uint32_t count, uint32_t *end) {
    sigbits mask = signals_mask_set(SIGBITS_ALL & ~SIGBITS_LIBC & ~raised_by_faults());
    int error = 0;
    for (*end = first; *end < count && error == 0; *end += error == 0)
        error = pthread_create(&runtime.handles[*end], NULL, worker_thread, scheduler.workers[*end]);
    signals_mask_set(mask);
    return error;
}

/* With `join_in` the caller becomes the first worker, else all have kernel threads of their own. */
static int start(uint32_t count, bool join_in) {
    int error = overflow_configure();
    if (error != 0)
        return error;
    scheduler.fenced = !membarrier_register();
    scheduler.idle = (struct idle){.fenced = scheduler.fenced};
    timekeeper_init();
    scheduler.shared = (struct fifo){.count = 0};
    store_relaxed(&scheduler.stopping, 0);
    ticks_per_us();
    annotate_init();
    stack_init();
    runtime.handles = mmap(NULL, WORKERS_MAX * sizeof *runtime.handles, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (runtime.handles == MAP_FAILED) {
        runtime.handles = NULL;
        return ENOMEM;
    }
    overflow_start();
    uint32_t made = 0, first = join_in ? 1 : 0, end;
    while (made < count && (scheduler.workers[made] = worker_new(made)) != NULL)
        made++;
    error = made == count ? 0 : ENOMEM;
    if (error == 0 && join_in)
        error = become_first(scheduler.workers[0]);
    if (error == 0) {
        if (join_in)
            thread_begin(scheduler.workers[0]);
        store_release(&scheduler.count, count);
        error = start_threads(first, count, &end);
        if (error != 0) {
            stop(first, end);
            if (join_in)
                thread_end(scheduler.workers[0]);
        }
    }
    if (error != 0)
        delete_workers(made);
    return error;
}

/* --- a child of fork ---------------------------------------------------------------------------------- */

/* The caller is the only thread. It may have been a unit: it goes on, on its unit's stack, as an external kernel thread
 * of a process without a runtime. What the others held is lost; nothing of it is unmapped, the caller may stand on it. */
static void fork_child(void) {
    ARCH_TLS_STORE(thrum_worker, NULL);
    store_relaxed(&scheduler.count, 0);
    runtime.handles = NULL;
    depot_fork_child(&unit_depot);
    stack_fork_child();
    keys_fork_child();
    pool_fork_child();
    scheduler_fork_child();
    store_release(&runtime.state, STOPPED);
}

static int watch_forks(void) {
    static bool watched;
    if (watched)
        return 0;
    int error = pthread_atfork(NULL, NULL, fork_child);
    watched = error == 0;
    return error;
}

/* --- starting and stopping ---------------------------------------------------------------------------- */

static int change_to_running(uint32_t workers, bool join_in) {
    int error = watch_forks();
    if (error == 0)
        error = start(workers, join_in);
    runtime.joined_in = join_in;
    store_release(&runtime.state, error == 0 ? RUNNING : STOPPED);
    return error;
}

int thrum_init(const struct thrum_config *config) {
    uint32_t workers, state = STOPPED;
    int error = config_workers(config, &workers);
    if (error != 0)
        return error;
    if (!cas_acq_rel(&runtime.state, &state, CHANGING))
        return EBUSY;
    return change_to_running(workers, true);
}

/* A program that never calls thrum_init: its first spawn comes here. */
int scheduler_start_default(void) {
    uint32_t workers, state;
    int error = config_workers(NULL, &workers);
    while (error == 0 && (state = load_acquire(&runtime.state)) != RUNNING) {
        if (state == STOPPED && cas_acq_rel(&runtime.state, &state, CHANGING))
            error = change_to_running(workers, false);
        else
            sched_yield(); /* another thread is at it */
    }
    return error;
}

int thrum_fini(void) {
    struct worker *worker = worker_here();
    uint32_t state = RUNNING;
    if (worker == NULL || !runtime.joined_in || worker->current != &runtime.primary ||
        !cas_acq_rel(&runtime.state, &state, CHANGING))
        return EPERM;
    uint32_t count = scheduler.count;
    stop(1, count);
    thread_end(worker);
    delete_workers(count);
    store_release(&runtime.state, STOPPED);
    return 0;
}

unsigned thrum_workers(void) {
    return load_acquire(&runtime.state) == RUNNING ? scheduler.count : 0;
}
