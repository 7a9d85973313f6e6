// SPDX-License-Identifier: Apache-2.0
/* Starting and stopping the workers. The thread that calls thrum_init becomes the first of them: what ran on it goes
 * on as a ULT that is bound to it, and its loop gets a stack of its own. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "os/clock.h"
#include "os/membarrier.h"
#include "os/signals.h"
#include "os/ticks.h"
#include "runtime/config.h"
#include "sched/worker.h"
#include "thrum/thrum.h"

enum state { STOPPED, CHANGING, RUNNING };

static struct {
    uint32_t state; /* enum state; by cas from STOPPED or RUNNING to CHANGING */
    pthread_t *handles;
    struct thrum_unit primary; /* what ran on the thread that called thrum_init */
    struct worker *first;
} runtime;

static size_t worker_bytes(void) {
    return (sizeof(struct worker) + 4095) & ~(size_t)4095;
}

static struct worker *worker_new(uint32_t id) {
    struct worker *worker =
        mmap(NULL, worker_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (worker == MAP_FAILED)
        return NULL;
    if (worker_init(worker, id) == 0)
        return worker;
    munmap(worker, worker_bytes());
    return NULL;
}

static void worker_delete(struct worker *worker) {
    worker_destroy(worker);
    munmap(worker, worker_bytes());
}

static void *run_loop(void *worker) {
    worker_loop(worker);
    return NULL;
}

/* Begins when all workers are there: they look at each other. */
static void *worker_thread(void *arg) {
    struct worker *worker = arg;
    ARCH_TLS_STORE(thrum_worker, worker);
    worker_loop(worker);
    ARCH_TLS_STORE(thrum_worker, NULL);
    return NULL;
}

/* The caller's kernel thread is worker 0. */
static int become_first(struct worker *worker) {
    worker->loop.fn = run_loop;
    worker->loop.arg = worker;
    worker->loop.stack_class = STACK_CLASS_DEFAULT;
    store_relaxed(&worker->loop.sp, UNIT_NEW);
    if (!unit_make_frame(worker, &worker->loop))
        return ENOMEM;
    runtime.primary = (struct thrum_unit){.kind = UNIT_BOUND, .bound = worker, .escaped = true};
    worker->current = &runtime.primary;
    runtime.first = worker;
    return 0;
}

static void stop(uint32_t started) {
    store_release(&scheduler.stopping, 1);
    for (uint32_t i = 1; i <= started; i++)
        idle_wake_this(&scheduler.idle, &scheduler.workers[i]->parking);
    for (uint32_t i = 1; i <= started; i++)
        pthread_join(runtime.handles[i], NULL);
}

static void delete_workers(uint32_t count) {
    ARCH_TLS_STORE(thrum_worker, NULL);
    store_relaxed(&scheduler.count, 0);
    for (uint32_t i = 0; i < count; i++) {
        worker_delete(scheduler.workers[i]);
        scheduler.workers[i] = NULL;
    }
    if (runtime.handles != NULL)
        munmap(runtime.handles, WORKERS_MAX * sizeof *runtime.handles);
    runtime.handles = NULL;
    depot_destroy(&unit_depot);
    stack_destroy();
}

/* Workers take no signals that are meant for the program: they are blocked, but for those that a fault raises. */
static int start_threads(uint32_t count, uint32_t *started) {
    sigbits mask = signals_mask_set(SIGBITS_ALL & ~SIGBITS_LIBC);
    int error = 0;
    for (uint32_t i = 1; i < count && error == 0; i++) {
        error = pthread_create(&runtime.handles[i], NULL, worker_thread, scheduler.workers[i]);
        if (error == 0)
            *started = i;
    }
    signals_mask_set(mask);
    return error;
}

static int start(uint32_t count) {
    scheduler.fenced = !membarrier_register();
    scheduler.idle = (struct idle){.fenced = scheduler.fenced};
    scheduler.shared = (struct fifo){.count = 0};
    store_relaxed(&scheduler.stopping, 0);
    ticks_per_us();
    stack_init();
    runtime.handles = mmap(NULL, WORKERS_MAX * sizeof *runtime.handles, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (runtime.handles == MAP_FAILED) {
        runtime.handles = NULL;
        return ENOMEM;
    }
    uint32_t made = 0, started = 0;
    while (made < count && (scheduler.workers[made] = worker_new(made)) != NULL)
        made++;
    int error = made == count ? become_first(scheduler.workers[0]) : ENOMEM;
    if (error == 0) {
        ARCH_TLS_STORE(thrum_worker, scheduler.workers[0]);
        store_release(&scheduler.count, count);
        error = start_threads(count, &started);
        if (error != 0)
            stop(started);
    }
    if (error != 0)
        delete_workers(made);
    return error;
}

int thrum_init(const struct thrum_config *config) {
    uint32_t workers, state = STOPPED;
    int error = config_workers(config, &workers);
    if (error != 0)
        return error;
    if (!cas_acq_rel(&runtime.state, &state, CHANGING))
        return EBUSY;
    error = start(workers);
    store_release(&runtime.state, error == 0 ? RUNNING : STOPPED);
    return error;
}

int thrum_fini(void) {
    struct worker *worker = worker_here();
    uint32_t state = RUNNING;
    if (worker == NULL || worker->current != &runtime.primary ||
        !cas_acq_rel(&runtime.state, &state, CHANGING))
        return EPERM;
    uint32_t count = scheduler.count;
    stop(count - 1);
    delete_workers(count);
    store_release(&runtime.state, STOPPED);
    return 0;
}

unsigned thrum_workers(void) {
    return load_acquire(&runtime.state) == RUNNING ? scheduler.count : 0;
}
