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
#include "runtime/adopt.h"
#include "runtime/blocking.h"
#include "runtime/children.h"
#include "runtime/config.h"
#include "runtime/member.h"
#include "runtime/overflow.h"
#include "runtime/places.h"
#include "runtime/solo.h"
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
    uint32_t state; /* enum state; to CHANGING by cas; its changes pair with the cas and the loads */
    bool joined_in; /* there is a runtime.primary */
    struct lock
        lock; /* held by a thread that changes the next four, or that ends the runtime because of them */
    uint32_t holders;         /* thrum_acquire's, and not yet released */
    bool by_acquire;          /* the runtime was started for them: thrum_init may join it */
    bool is_left;             /* thrum_fini was called while there were holders */
    bool is_ending;           /* it was called, and there are none */
    struct settings settings; /* of the runtime; r/o while there is one */
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
    store_relaxed(&runtime.externals_look, has_several_cpus());
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
                                                    .exceptions_here = member_exceptions(),
                                                    .place = places_are_bound() ? places_enter : NULL,
                                                    .arm = workers_arm,
                                                    .add_relief = workers_add_relief,
                                                    .is_over = member_is_over};
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
    solos_fork_child();
    depot_fork_child(&unit_depot);
    stack_fork_child();
    keys_fork_child();
    pool_fork_child();
    scheduler_fork_child();
    stacked_fork_child();
    order_fork_child();
    calls_fork_child();
    scope_fork_child();
    lock_reset(&startup.lock);
    startup.holders = 0;
    startup.joined_in = startup.by_acquire = startup.is_left = startup.is_ending = false;
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
    startup.settings = *settings;
    store_release(&runtime.open, error == 0);
    store_release(&startup.state, error == 0 ? RUNNING : STOPPED);
    return error;
}

/* The runtime is one that a library has started, and no thread has joined it; or the primary has left it, and calls this. */
static bool claim_running(void) {
    uint32_t state = RUNNING;
    const struct worker *worker = enter();
    lock_acquire(&startup.lock);
    bool is_mine = startup.joined_in
                       ? startup.is_left && worker != NULL && worker->current == &runtime.primary
                       : startup.by_acquire && worker == NULL;
    is_mine = is_mine && cas_acq_rel(&startup.state, &state, CHANGING);
    if (is_mine)
        startup.is_left = false;
    lock_release(&startup.lock);
    leave();
    return is_mine;
}

static int join_running(const struct thrum_config *config, const struct settings *settings) {
    int error = startup.joined_in ? 0 : workers_adopt(&runtime.primary);
    startup.joined_in |= error == 0;
    store_release(&startup.state, RUNNING);
    if (error == 0)
        adopt_settings(config, settings, &startup.settings);
    return error;
}

int thrum_init(const struct thrum_config *config) {
    struct settings settings;
    uint32_t state = STOPPED;
    int error = config_read(config, &settings);
    if (error != 0)
        return error;
    if (cas_acq_rel(&startup.state, &state, CHANGING))
        return change_to_running(&settings, true);
    return claim_running() ? join_running(config, &settings) : EBUSY;
}

/* `for_library`: by thrum_acquire. */
static int start_default(bool for_library) {
    struct settings settings;
    uint32_t state;
    int error = config_read(NULL, &settings);
    while (error == 0 && (state = load_acquire(&startup.state)) != RUNNING) {
        if (state == STOPPED && cas_acq_rel(&startup.state, &state, CHANGING)) {
            startup.by_acquire = for_library;
            error = change_to_running(&settings, false);
        } else {
            sched_yield(); /* another thread does it */
        }
    }
    return error;
}

/* A program that never calls thrum_init: its first spawn comes here. */
int scheduler_start_default(void) {
    return start_default(false);
}

/* Why thrum_fini does not end the runtime, or that it does: no library gets hold of it from here on. */
enum fini { FINI_ENDS, FINI_LEAVES, FINI_IS_OTHERS };

static enum fini fini_begins(bool by_release) {
    const struct worker *worker = enter();
    bool is_primary = worker != NULL && startup.joined_in && worker->current == &runtime.primary;
    enum fini how = FINI_IS_OTHERS;
    lock_acquire(&startup.lock);
    if (is_primary && (!startup.is_left || by_release)) {
        how = startup.holders == 0 ? FINI_ENDS : FINI_LEAVES;
        startup.is_left = how == FINI_LEAVES;
        startup.is_ending = how == FINI_ENDS;
    }
    lock_release(&startup.lock);
    leave();
    return how;
}

static void end(void) {
    workers_close();
    trace_run(enter(), &runtime.primary, THRUM_TRACE_END);
    leave();
    store_release(&startup.state, CHANGING);
    store_release(&runtime.open, 0);
    preempt_close();
    workers_stop();
    solos_stop();
    blocking_stop();
    trace_file_write();
    workers_delete();
    solos_delete();
    forget();
    startup.by_acquire = startup.is_left = startup.is_ending = false;
    store_release(&startup.state, STOPPED);
}

int thrum_fini(void) {
    switch (fini_begins(false)) {
    case FINI_ENDS: end(); return 0;
    case FINI_LEAVES: return 0;
    default: return EPERM;
    }
}

/* --- libraries ---------------------------------------------------------------------------------------- */

/* There is a runtime, which does not end before this is released. False: there is none, or it is changing. */
static bool hold(void) {
    enter();
    lock_acquire(&startup.lock);
    bool runs = load_acquire(&startup.state) == RUNNING && !startup.is_ending;
    startup.holders += runs;
    lock_release(&startup.lock);
    leave();
    return runs;
}

int thrum_acquire(void) {
    int error = 0;
    while (!hold() && error == 0) {
        sched_yield(); /* another thread may be ending it */
        error = start_default(true);
    }
    return error;
}

int thrum_release(void) {
    enter();
    lock_acquire(&startup.lock);
    bool was_held = startup.holders > 0;
    startup.holders -= was_held;
    bool is_last = was_held && startup.holders == 0 && startup.is_left;
    lock_release(&startup.lock);
    leave();
    if (is_last && fini_begins(true) == FINI_ENDS)
        end();
    return was_held ? 0 : EINVAL;
}

uint64_t thrum_runtime_id(void) {
    return load_acquire(&startup.state) == RUNNING ? scheduler_runtime() : 0;
}

unsigned thrum_workers(void) {
    return load_acquire(&startup.state) == RUNNING ? load_relaxed(&runtime.running) : 0;
}
