// SPDX-License-Identifier: Apache-2.0
/* Starting and stopping the runtime. The thread that calls thrum_init becomes the first of the workers: what ran on
 * it continues as a ULT that is bound to it. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "context/annotate.h"
#include "os/membarrier.h"
#include "os/signals.h"
#include "os/ticks.h"
#include "os/topology.h"
#include "preempt/preempt.h"
#include "runtime/blocking.h"
#include "runtime/children.h"
#include "runtime/config.h"
#include "runtime/overflow.h"
#include "runtime/places.h"
#include "runtime/trace_file.h"
#include "runtime/workers.h"
#include "sched/call.h"
#include "sched/exit.h"
#include "sched/keys.h"
#include "sched/pool/order.h"
#include "sched/pool/pool.h"
#include "sched/pool/scheduler.h"
#include "sched/pool/stacked.h"
#include "sched/time/timekeeper.h"
#include "sched/trim.h"
#include "sched/worker.h"
#include "sync/scope.h"
#include "thrum/thrum.h"

enum state { STOPPED, CHANGING, RUNNING };

static struct {
    uint32_t state; /* enum state; by cas from STOPPED or RUNNING to CHANGING */
    bool joined_in; /* there is a runtime.primary */
} startup;

/* When there are no workers. */
static void forget(void) {
    store_relaxed(&runtime.gone, 1);
    preempt_stop();
    keys_fini();
    scheduler_forget();
    stacked_forget();
    calls_forget();
    depot_destroy(&unit_depot);
    stack_destroy();
    trace_forget();
    overflow_stop();
}

/* The kernel registers a process with one thread in microseconds, one with several in 10 to 14 ms: so at once, not when
 * there is a runtime to be. */
static __attribute__((constructor)) void register_early(void) {
    membarrier_register();
}

static bool has_several_cpus(void) {
    struct cpus cpus;
    cpus_allowed(&cpus);
    return cpus_count(&cpus) > 1;
}

/* With `join_in` the caller becomes the first worker, else all have kernel threads of their own. */
static int start(const struct settings *settings, bool join_in) {
    int error = overflow_configure();
    if (error == 0)
        error = places_configure();
    if (error == 0)
        error = trace_file_configure();
    if (error != 0)
        return error;
    runtime.fenced = !membarrier_register();
    runtime.idle = (struct idle){.fenced = runtime.fenced};
    runtime.externals_look = has_several_cpus();
    timekeeper_init();
    runtime.shared = (struct fifo){.count = 0};
    runtime.orphans = 0;
    runtime.primary.kind = UNIT_FREE; /* unless the caller becomes it */
    store_relaxed(&runtime.gone, 0);
    store_relaxed(&runtime.stopping, 0);
    ticks_per_us();
    annotate_init();
    trace_file_start();
    exit_init();
    trim_init();
    stack_init(settings->stack_size);
    overflow_start();
    places_start(settings->workers);
    const struct preempt_callbacks runtime_below = {.workers = settings->workers,
                                                    .exceptions_here = workers_exceptions(),
                                                    .place = places_are_bound() ? places_enter : NULL,
                                                    .arm = workers_arm,
                                                    .add_relief = workers_add_relief,
                                                    .is_over = workers_is_over};
    error = preempt_start(&settings->preempt, &runtime_below);
    if (error == 0)
        error = workers_start(settings->workers, join_in ? &runtime.primary : NULL);
    if (error != 0)
        forget();
    return error;
}

/* --- a child of fork ---------------------------------------------------------------------------------- */

/* The caller is the only thread. It may have been a unit: it continues, on its unit's stack, as an external kernel
 * thread of a process without a runtime. What the others held is lost; nothing of it is unmapped, since the caller
 * may stand on it. */
static void fork_child(void) {
    const struct worker *worker = worker_here();
    ARCH_TLS_STORE(thrum_worker, NULL);
    trace_file_fork_child();
    store_relaxed(&runtime.open, 0);
    store_relaxed(&runtime.count, 0);
    lock_reset(&runtime.shared.lock);
    migrate_fork_child();
    workers_fork_child();
    preempt_fork_child(worker);
    blocking_fork_child();
    depot_fork_child(&unit_depot);
    stack_fork_child();
    keys_fork_child();
    pool_fork_child();
    scheduler_fork_child();
    stacked_fork_child();
    order_fork_child();
    calls_fork_child();
    scope_fork_child();
    store_release(&startup.state, STOPPED);
    children_let_signals_in(worker);
    children_fork_child();
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

static int change_to_running(const struct settings *settings, bool join_in) {
    int error = watch_forks();
    children_start(gettid(), signals_mask_get());
    if (error == 0)
        error = start(settings, join_in);
    if (error == EAGAIN && settings->preempt.mode != THRUM_PREEMPT_NONE && settings->preempt.is_lazy) {
        struct settings without = *settings; /* unavailable features were not requested */
        without.preempt = (struct preempt_settings){.mode = THRUM_PREEMPT_NONE};
        error = start(&without, join_in);
    }
    startup.joined_in = join_in;
    store_release(&runtime.open, error == 0);
    store_release(&startup.state, error == 0 ? RUNNING : STOPPED);
    return error;
}

int thrum_init(const struct thrum_config *config) {
    struct settings settings;
    uint32_t state = STOPPED;
    int error = config_read(config, &settings);
    if (error != 0)
        return error;
    if (!cas_acq_rel(&startup.state, &state, CHANGING))
        return EBUSY;
    return change_to_running(&settings, true);
}

/* A program that never calls thrum_init: its first spawn comes here. */
int scheduler_start_default(void) {
    struct settings settings;
    uint32_t state;
    int error = config_read(NULL, &settings);
    while (error == 0 && (state = load_acquire(&startup.state)) != RUNNING) {
        if (state == STOPPED && cas_acq_rel(&startup.state, &state, CHANGING))
            error = change_to_running(&settings, false);
        else
            sched_yield(); /* another thread does it */
    }
    return error;
}

int thrum_fini(void) {
    const struct worker *worker = enter();
    bool is_primary = worker != NULL && startup.joined_in && worker->current == &runtime.primary;
    leave();
    if (!is_primary)
        return EPERM;
    workers_close();
    trace_run(enter(), &runtime.primary, THRUM_TRACE_END);
    leave();
    store_release(&startup.state, CHANGING);
    store_release(&runtime.open, 0);
    preempt_close();
    workers_stop();
    blocking_stop();
    trace_file_write();
    workers_delete();
    forget();
    store_release(&startup.state, STOPPED);
    return 0;
}

uint64_t thrum_runtime_id(void) {
    return load_acquire(&startup.state) == RUNNING ? scheduler_runtime() : 0;
}

unsigned thrum_workers(void) {
    return load_acquire(&startup.state) == RUNNING ? load_relaxed(&runtime.running) : 0;
}
