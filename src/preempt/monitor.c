// SPDX-License-Identifier: Apache-2.0
/* See monitor.h. */
#include "preempt/monitor.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/futex.h"
#include "os/lock.h"
#include "os/syscall.h"
#include "os/thread.h"
#include "preempt/preempt.h"
#include "preempt/watch.h"
#include "sched/current.h"
#include "sched/pool/scheduler.h"
#include "sched/worker.h"

#define REPEATS UINT64_C(1)

static struct {
    struct lock lock; /* starts and stops */
    pthread_t thread;
    bool runs;         /* under lock */
    uint32_t stopping; /* to the monitor: its store pairs with watch's load */
    uint32_t word;     /* changes when it must look: pairs with watch's load, which comes first */
    uint64_t until;    /* ns; when it does so by itself: pairs with `due` (monitor.h) */
} monitor = {.until = TIMER_NEVER};

/* --- for requesters ----------------------------------------------------------------------------------- */

void monitor_look_again(void) {
    fetch_add_seq_cst(&monitor.word, 1U);
    futex_wake(&monitor.word, 1);
}

void monitor_set(struct worker *worker, uint64_t first, uint32_t repeats) {
    struct tick *tick = &worker->tick;
    uint64_t due = first != 0 ? (first & ~REPEATS) | repeats : 0;
    store_seq_cst(&tick->monitor.sent, 0);
    store_seq_cst(&tick->monitor.due, due);
    if (due != 0 && due < load_seq_cst(&monitor.until))
        monitor_look_again();
}

/* --- the monitor -------------------------------------------------------------------------------------- */

/* False: it has ended, or no signal can be queued; the next one may be. */
static bool send(struct worker *worker) {
    struct tick *tick = &worker->tick;
    /* Pairs with monitor_set and tick_has_arrived: the tid is the new one. */
    if (exchange_seq_cst(&tick->monitor.sent, 1) != 0) {
        store_relaxed(&tick->monitor.skipped, 1);
        return true;
    }
    /* Pairs with take_on (carrier.c). */
    bool is_sent = alarm_ring(load_seq_cst(&worker->tid), preempt.settings.signal) == 0;
    if (!is_sent)
        store_seq_cst(&tick->monitor.sent, 0); /* pairs with the exchanges */
    return is_sent;
}

/* The only one that was requested: no later one replaces it. */
static uint64_t once_more(struct tick *tick, uint64_t now) {
    uint64_t none = 0, next = (now + load_relaxed(&preempt.period)) & ~REPEATS;
    return cas_acq_rel(&tick->monitor.due, &none, next) ? next : none;
}

static uint64_t following(uint64_t at, uint64_t period, uint64_t now) {
    uint64_t next = period != 0 ? at + ((now - at) / period + 1) * period : 0;
    return next != 0 ? (next & ~REPEATS) | REPEATS : 0;
}

/* The worker's next tick, TIMER_NEVER for none. */
static uint64_t look_at(struct worker *worker, uint64_t now) {
    struct tick *tick = &worker->tick;
    uint64_t due = load_seq_cst(&tick->monitor.due);
    if (due != 0 &&
        load_relaxed(&tick->state) == TICK_NEVER) { /* another thread ended its rest as it ended itself */
        cas_acq_rel(&tick->monitor.due, &due, UINT64_C(0));
        return TIMER_NEVER;
    }
    while (due != 0 && (due & ~REPEATS) <= now) {
        uint64_t at = due & ~REPEATS;
        uint64_t next = (due & REPEATS) != 0 ? following(at, load_relaxed(&tick->request.period), now) : 0;
        if (!cas_acq_rel(&tick->monitor.due, &due, next))
            continue;
        due = send(worker) || next != 0 ? next : once_more(tick, now);
    }
    return due != 0 ? due & ~REPEATS : TIMER_NEVER;
}

static uint64_t look_at_all(void) {
    uint64_t now = timer_now(), earliest = TIMER_NEVER;
    for (uint32_t i = 0; i < load_acquire(&runtime.count); i++) {
        uint64_t next = look_at(runtime.workers[i], now);
        if (next < earliest)
            earliest = next;
    }
    return earliest;
}

static void sleep_until(uint32_t seen, uint64_t moment) {
    struct timespec deadline = {(time_t)(moment / 1000000000), (long)(moment % 1000000000)};
    futex_wait_until(&monitor.word, seen, CLOCK_MONOTONIC, moment != TIMER_NEVER ? &deadline : NULL);
}

/* What it reads of kernel threads (watch.c) must take no descriptor's number that the program expects, nor be open in a
 * child of fork. So it has a table of its own, with nothing in it. It makes no kernel thread, which would share that.
 * Before Linux 5.9 it shares the program's. */
static void leave_descriptors(void) {
    enum { CLOSE_RANGE = 436, UNSHARE = 1 << 1 };
    sys(CLOSE_RANGE, 0, UINT32_MAX, UNSHARE);
}

static void *watch(void *unused) {
    leave_descriptors();
    sys(SYS_prctl, PR_SET_TIMERSLACK, 1, 0, 0, 0);
    for (;;) {
        store_seq_cst(&monitor.until, TIMER_NEVER);
        uint32_t seen = load_seq_cst(&monitor.word); /* first: the thread that stops it changes that last */
        if (load_acquire(&monitor.stopping))
            return unused;
        uint64_t earliest = look_at_all(), watch_again = watch_look(timer_now());
        if (watch_again < earliest)
            earliest = watch_again;
        store_seq_cst(&monitor.until, earliest);
        sleep_until(seen, earliest);
    }
}

/* --- life --------------------------------------------------------------------------------------------- */

int monitor_start(void) {
    enum { STACK = 65536 };
    int error = 0;
    enter();
    lock_acquire(&monitor.lock);
    if (!monitor.runs) {
        store_relaxed(&monitor.stopping, 0);
        watch_start();
        error = thread_make_quiet(&monitor.thread, STACK, watch, NULL);
        monitor.runs = error == 0;
    }
    lock_release(&monitor.lock);
    leave();
    return error;
}

void monitor_stop(void) {
    if (!monitor.runs)
        return;
    store_release(&monitor.stopping, 1);
    monitor_look_again();
    pthread_join(monitor.thread, NULL);
    monitor.runs = false;
}

void monitor_fork_child(void) {
    lock_reset(&monitor.lock);
    monitor.runs = false;
    monitor.until = TIMER_NEVER;
    watch_start();
}
