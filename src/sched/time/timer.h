// SPDX-License-Identifier: Apache-2.0
/* Timers: functions to call at a deadline, and units that wait at most until one.
 *
 * Representation. Each worker has a store of its own: a leftist heap (Crane 1972; Knuth, TAOCP 3, 5.2.3), linked
 *   through the timers, so that starting one cannot fail, and each operation touches at most 2 log2(n) of them.
 * Callers. A timer is started on the worker's own store, fired from there by any worker, stopped by any worker.
 * Firing. The owner fires its own now and then (timers_look); a worker that searches fires all
 *   (timers_look_everywhere). The timekeeper is the parked worker that sleeps until the next deadline (timekeeper.h).
 * Invariants, under the store's lock: parent->deadline <= timer->deadline; rank(right) <= rank(left);
 *   rank = rank(right) + 1; next = the root's deadline, or TIMER_NEVER.
 * Linearization. start, stop: the release of the lock. fire() is called *under the lock*, so the next holder of the
 *   lock knows that it has returned. fire() must therefore not start or stop a timer, nor take a lock that a thread
 *   may hold while it does.
 * Reclamation. A timer lies where its starter wants, mostly on the waiter's stack. From the beginning of its fire()
 *   on only that call touches it, so it may be gone when fire()'s last act, the wake-up, is done.
 *
 * Modelled in tests/model/timekeeper.pml. */
#ifndef THRUM_SCHED_TIME_TIMER_H
#define THRUM_SCHED_TIME_TIMER_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/atomic.h"
#include "base/inside.h"
#include "os/clock.h"
#include "os/lock.h"

struct thrum_unit;
struct timers;
struct worker;

#define TIMER_NEVER UINT64_MAX

struct timer {
    uint64_t
        deadline; /* ns, CLOCK_MONOTONIC; set before timer_start, r/o from then on; TIMER_NEVER is allowed */
    /* On any worker, inside, under a lock (see above): brief, does not block. Set before timer_start. */
    void (*fire)(struct worker *worker, struct timer *timer);
    /* under the store's lock */
    struct timers *store;                /* r/o once started */
    struct timer *left, *right, *parent; /* right: once it is out of the heap, the next to be fired */
    uint32_t rank;                       /* 0: not in the heap */
};

/* A worker's. */
struct timers {
    _Alignas(64) uint64_t next; /* the earliest deadline; changed under lock, read by any thread */
    struct timer *root;         /* under lock */
    struct lock lock;
    uint32_t stride; /* the owner's, as the next: timers_look */
    uint64_t looked;
};

/* The caller is on `worker`, inside. */
INSIDE void timer_start(struct worker *worker, struct timer *timer);

/* True: it has not fired and never will. False: it fired, and fire() has returned. By any thread, once. */
INSIDE bool timer_stop(struct worker *worker, struct timer *timer);

/* --- the clock ---------------------------------------------------------------------------------------- */

/* Through the vDSO, unlike clock_monotonic_ns: this one is on the way of each sleep. */
static inline uint64_t timer_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return clock_ns(&time);
}

static inline struct timespec timer_spec(uint64_t deadline) {
    return (struct timespec){(time_t)(deadline / 1000000000), (long)(deadline % 1000000000)};
}

/* --- for the worker ----------------------------------------------------------------------------------- */

void timers_init(struct timers *timers);

/* Has there ever been one? */
bool timers_were_used(void);

/* The earliest deadline of all workers. */
uint64_t timers_next(void);

static inline bool timers_are_empty(const struct timers *timers) {
    return load_relaxed(&timers->next) == TIMER_NEVER;
}

/* For the owner of timers, or the worker that fires those of stopped workers: fires what has expired. Returns after
 * how many picks to look again: so many that a deadline is missed by about LOOK_NS, at the present rate of picks. */
INSIDE uint32_t timers_look(struct worker *worker);

/* For a searching worker: fires what has expired anywhere, a batch of each worker's. */
INSIDE void timers_look_everywhere(struct worker *worker);

#endif
