// SPDX-License-Identifier: Apache-2.0
/* A worker: a kernel thread, or one after another (carrier.h), that runs units one after another. Only the worker
 * itself touches what is here, in non-preemptible regions, unless it says otherwise.
 *
 * How a unit waits: it sets sp to UNIT_ON_CPU, announces itself where others find it (a waiter list, a `join` word),
 * and calls unit_block. How it resumes: the thread that takes it from there calls unit_wake, exactly once. */
#ifndef THRUM_SCHED_WORKER_H
#define THRUM_SCHED_WORKER_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch_context.h"
#include "arch_ticks.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/inside.h"
#include "context/annotate.h"
#include "context/depot.h"
#include "context/stack.h"
#include "sched/carrier.h"
#include "sched/current.h"
#include "sched/idle.h"
#include "sched/may_wait.h"
#include "sched/pool/deque.h"
#include "sched/pool/fair.h"
#include "sched/pool/fifo.h"
#include "sched/pool/yield_ring.h"
#include "sched/tcb.h"
#include "sched/tick.h"
#include "sched/time/timer.h"
#include "sched/trace.h"
#include "sched/unit.h"

struct thrum_sched;

/* OPEN -> CLOSED -> LEAVING by the thread that stops it, or back to OPEN if threads are bound to it. LEAVING ->
 * CLOSED -> OPEN by the creator of a new worker in the slot, or back to LEAVING without a kernel thread for it.
 * RELIEVES and SOLO from its beginning. One at a time (runtime/workers.h). */
enum worker_stay {
    WORKER_OPEN,
    WORKER_CLOSED,   /* no thread can be bound to it */
    WORKER_LEAVING,  /* it is on its way out, or gone; no scheduler is wanted any more */
    WORKER_RELIEVES, /* none that others see: it is there for those that are stuck (preempt/relief.c) */
    WORKER_SOLO,     /* it runs one unit only, and is in no slot (runtime/solo.h) */
};

struct worker {
    struct thrum_unit *aside; /* first: `base`, on whose stack arch_switch waits for the next unit; r/o */
    struct thrum_unit *current;
    uint32_t turn;       /* pick_slow's */
    uint32_t until_slow; /* picks until the next that looks further, or 1: each does */
    union {
        struct {
            bool has_scheduler; /* a scheduler chooses: pick() gives nothing */
            uint8_t queues;     /* so many of the next spawns of `stolen` are queued (spawn.c) */
        };
        uint16_t not_at_once; /* either: a spawn looks closer before it runs a child at once */
    };
    uint32_t id; /* r/o */
    int32_t tid; /* of the kernel thread that it is, or was */
    struct exception_globals
        *exceptions; /* of the block that is installed; NULL: not a C++ program, and not watch_on.
                                             tcb_unit_has_one: its unit has a block */
    struct depot_cache units;
    struct depot_cache stacks[STACK_CLASSES];
    struct deque deque;         /* thieves too */
    struct yield_ring yields;   /* thieves too */
    struct fifo inbox;          /* any thread pushes; units that run nowhere else */
    struct parking parking;     /* wakers too */
    struct timers timers;       /* threads that fire or stop them, too */
    bool keeps_time;            /* timekeeper.h */
    struct thrum_unit *loop;    /* what runs when nothing else does: base, or a scheduler that runs units */
    struct thrum_unit base;     /* its own loop, on a stack of its own or its kernel thread's */
    struct thrum_unit *tasklet; /* for the loop to run: the unit that switched to the loop could not */
    struct thrum_unit *ended;   /* ... to say so of, once it has left its stack, which is the user's own */
    struct thrum_unit *kept;    /* ... to go to its kernel thread for */
    struct thrum_sched *sched;  /* whose function runs on `base`; NULL: the default */
    struct lock sched_lock;
    struct thrum_sched *wanted_sched; /* stored under sched_lock; pairs with the loads of any thread */
    uint32_t stay;                    /* enum worker_stay; the stopper's store pairs with others' loads */
    uint32_t bound_units;             /* threads that run nowhere else; pairs with `stay` (worker_bind) */
    bool in_order;                    /* its scheduler runs the unit that it has chosen (order_look_back) */
    struct thrum_sched *idle_sched;   /* while it searches for that one; its store pairs with wakers' loads */
    uint32_t looks;                   /* it reads what others run; its end pairs with order_units_are_read */
    uint64_t random;
    struct {
        uint64_t switches, steals, parks;
        uint64_t migrations; /* threads that thrum_migrate sent here; by any thread */
        uint64_t preemptions, ticks;
    } counters;
    struct exception_globals no_exceptions;
    struct annotate_thread annotate;
    struct thrum_sched *woken_for; /* it has left the search for this one's pools, and run nothing since */
    struct trace_ring trace;
    const struct thrum_unit *stolen; /* the last creator that it has stolen: to be compared with, no more */
    struct tcb
        *tcb; /* for units without a block of their own; NULL: none is kept. With carriers: its carrier's */
    struct tcb *reserve; /* to continue with when one does (preempt/lend.c) */
    struct {
        struct own_block *first;
        uint32_t count;
    } as_new;      /* blocks for threads that have one for life (preempt/own.c) */
    bool is_short; /* it uses the reserve, and has had none since */
    /* A unit that has a block for life runs without a spare behind it: next runs one that was preempted. */
    bool owes;
    struct tcb home; /* its kernel thread's own */
    struct fair fair;
    struct tick tick;
    /* WORKER_SOLO. Written by its unit before it is first woken there, or on this kernel thread; `is_left` also where no unit
     * comes, by the thread that made it (solo.c). */
    struct {
        struct thrum_unit *unit; /* NULL: none comes */
        struct worker *bound;    /* the unit's place before, to which it returns (migrate.c) */
        uint8_t kind;            /* likewise */
        bool is_left;            /* the unit has left, or none comes: the loop ends */
        uint32_t wake;           /* futex: external.c */
        uint32_t depth;          /* how often it has been locked */
        struct timer *timer;     /* of the present wait; NULL: none */
    } solo;
};

enum { WORKERS_MAX = 1024, FAIR_EVERY = 64 };

#define WORKER_SOLO_ID WORKERS_MAX       /* `id` of all solo workers */
#define WORKER_IDS     (WORKERS_MAX + 1) /* so many are in a table by `id` */

_Static_assert(offsetof(struct worker, aside) == 0, "context.S");

/* Workers are added and stopped while others read all of them. So a slot below `count` is permanent until the runtime
 * ends: a stopped worker has empty queues, is never parked, and its slot waits for the next one. Only its timers
 * remain, for every worker to fire. */
extern struct runtime {
    struct worker *workers[WORKERS_MAX]; /* r/o below count */
    uint32_t count;                      /* grows; its store pairs with the loads: the workers are there */
    uint32_t open;    /* there is a runtime, and external threads may use it; pairs with their loads */
    uint32_t gone;    /* there was one, and its threads' descriptors are unmapped */
    uint32_t running; /* of them: those that have not been stopped */
    /* Timers of one that was stopped may be left. Set by exchanges, which pair with the loads and the exchange of 0: a store
     * would hide from these what an earlier setter has left. */
    uint32_t orphans;
    uint32_t nodes; /* r/o: of NUMA */
    /* Where each began its last search; by the worker itself. The last: WORKER_SOLO_ID. */
    uint8_t node_of[WORKER_IDS];
    bool fenced;         /* r/o: no membarrier */
    bool externals_look; /* r/o: an external kernel thread looks for a moment before it sleeps */
    uint32_t stopping;   /* workers_stop's store pairs with the loads of workers that are about to park */
    struct fifo shared;  /* from outside, and what rings could not take */
    struct idle idle;
    struct thrum_unit primary; /* what ran on the thread that called thrum_init */
} runtime;

extern struct depot unit_depot;

/* --- choosing ----------------------------------------------------------------------------------------- */

INSIDE struct thrum_unit *pick_slow(struct worker *worker);

/* For a unit that is interrupted: from all queues that this worker looks at, and from others'. Oldest first, unless the
 * sources of these are not due (fair.h): then by the worker's order. */
INSIDE struct thrum_unit *pick_fairly(struct worker *worker);

/* For a unit that gives way to what the worker's order prefers, before its slice is over. */
INSIDE struct thrum_unit *pick_preferred(struct worker *worker);

/* From all queues that this worker looks at, oldest first. */
INSIDE struct thrum_unit *pick_queued(struct worker *worker);

/* For a worker without work: from all queues, after timers have been looked at. */
INSIDE struct thrum_unit *pick_anywhere(struct worker *worker);

/* The primary in a pool of a front end's (front.h): like a unit in a pool, its host alone says when it runs. */
static inline bool unit_is_fronts(const struct thrum_unit *unit) {
    return unit->is_primary && load_acquire(&unit->pool) != NULL; /* pairs with front_set_primary */
}

/* One that is bound, to this worker, where the core may resume it. */
static inline bool unit_is_at_home(const struct worker *worker, const struct thrum_unit *unit) {
    return load_relaxed(&unit->bound) == worker && !unit_is_fronts(unit);
}

/* Is there something that any worker would run, or see to? */
SIGSAFE bool has_work_for_any(void);

INSIDE static inline __attribute__((always_inline)) struct thrum_unit *pick_own(struct worker *worker) {
    struct thrum_unit *unit = deque_pop(&worker->deque);
    if (unit != NULL)
        return unit;
    if (__builtin_expect(!fifo_is_empty(&worker->inbox), 0) && (unit = fifo_pop(&worker->inbox)) != NULL)
        return unit;
    return yield_ring_pop(&worker->yields);
}

/* What this worker runs next, or NULL. Newest first; now and then those are looked at that would starve. */
INSIDE static inline __attribute__((always_inline)) struct thrum_unit *pick(struct worker *worker) {
    if (__builtin_expect(--worker->until_slow == 0, 0))
        return pick_slow(worker);
    return pick_own(worker);
}

/* Queued where this worker looks, besides its deque. */
static inline uint64_t worker_count_queued(const struct worker *worker) {
    return (uint64_t)load_relaxed(&worker->inbox.count) + load_relaxed(&runtime.shared.count) +
           yield_ring_count(&worker->yields);
}

INSIDE void run_queue_overflow(struct thrum_unit *unit);

INSIDE static inline void run_queue_push(struct worker *worker, struct thrum_unit *unit) {
    if (__builtin_expect(!deque_push(&worker->deque, unit), 0))
        run_queue_overflow(unit);
    idle_wake_check(&runtime.idle);
}

/* Marsaglia's xorshift64. */
INSIDE static inline uint64_t worker_random(struct worker *worker) {
    uint64_t x = worker->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return worker->random = x;
}

/* One of its counters: written by itself only, read by any thread. */
static inline void count_one(uint64_t *counter) {
    store_relaxed(counter, load_relaxed(counter) + 1);
}

/* Before something that is not the library's runs. */
INSIDE static inline void worker_wants_ticks(struct worker *worker) {
    if (__builtin_expect(load_relaxed(&worker->tick.state) == TICK_OFF, 0))
        tick_begin(worker);
}

/* --- switching ---------------------------------------------------------------------------------------- */

INSIDE bool unit_make_frame(struct worker *worker, struct thrum_unit *unit);

/* Gives a new one a stack. False: there is none, it is queued again; or the loop has to see to it. */
INSIDE static inline bool unit_ready(struct worker *worker, struct thrum_unit *unit) {
    return __builtin_expect((intptr_t)load_relaxed(&unit->sp) > 0, 1) || unit_make_frame(worker, unit);
}

/* ... or is the unit that leaves, woken meanwhile. */
INSIDE static inline bool unit_ready_to_follow(struct worker *worker, const struct thrum_unit *self,
                                               struct thrum_unit *unit) {
    return __builtin_expect((intptr_t)load_relaxed(&unit->sp) > 0, 1) || unit == self ||
           unit_make_frame(worker, unit);
}

/* Is there more to switch than registers: exceptions in flight, a thread control block (tcb_unit_has_one), or tools to notify
 * (annotate.h, trace.h)? */
static inline bool switch_is_slow(const struct worker *worker) {
    const struct exception_globals *exceptions = worker->exceptions;
    return __builtin_expect(
        exceptions != NULL && (exceptions->caught != NULL || exceptions->uncaught != 0 || watch_on), 0);
}

/* May `self`, which runs there, be followed only by a unit with a block (preempt/lend.c)? */
static inline bool worker_owes_from(const struct worker *worker, const struct thrum_unit *self) {
    return __builtin_expect(worker->owes, 0) && self->tcb != NULL;
}

/* Between a unit's block, kept while it is preempted or for life, and its worker's (tcb.h). */
INSIDE static inline __attribute__((always_inline)) void install_workers_tcb(struct worker *worker) {
    tcb_install(worker, worker->tcb);
    worker->exceptions = worker->tcb->exceptions;
}

INSIDE static inline __attribute__((always_inline)) void install_units_tcb(struct worker *worker,
                                                                           const struct thrum_unit *self) {
    tcb_install(worker, self->tcb);
    worker->exceptions = &tcb_unit_has_one;
}

/* arch_switch and arch_call with all that. `why` it is left, for the trace. */
INSIDE void switch_slow(struct worker *worker, struct thrum_unit *self, struct thrum_unit *next,
                        enum thrum_trace_kind why);
INSIDE void call_slow(struct worker *worker, struct thrum_unit *self, struct thrum_unit *child,
                      struct thrum_unit *parent);
/* Calls a child that has a block of its own (own_make). `self`, which may be resumed by any worker, is enqueued. */
INSIDE void call_own(struct worker *worker, struct thrum_unit *self, struct thrum_unit *child);

/* yield.c: enqueues a runnable unit that gives up its worker. It has announced itself. `place` is an earlier result of
 * unit_place. `to_all`: where all workers look, if it may run on any. */
INSIDE void unit_requeue(struct worker *worker, struct thrum_unit *self, enum unit_kind place, bool to_all);

/* It is bound to another worker now. */
SIGSAFE bool unit_belongs_elsewhere(const struct worker *worker, const struct thrum_unit *self);

/* Picks the unit to switch to on a yield; NULL: no other is runnable. `fairly`: also units that take a search to
 * find. */
INSIDE struct thrum_unit *unit_pick_for_yield(struct worker *worker, struct thrum_unit *self, bool fairly);

/* The lowest byte of its stack; it has one. */
SIGSAFE char *unit_stack_low(const struct thrum_unit *unit);

/* It has left its stack for good: its joiner may continue. */
INSIDE void unit_publish_end(struct worker *worker, struct thrum_unit *unit);

/* The stack that it stands on: its own, or its kernel thread's. For annotations. */
struct annotate_stack unit_stack(const struct worker *worker, const struct thrum_unit *unit);

/* The next two: the caller is inside, once (the count is the kernel thread's, and the unit that resumes leaves once), has announced
 * itself, and is inside again, perhaps on another worker, when it returns. `why` is read where there is a trace. */

/* What is before the switch itself. False: there is none, as the caller stays. */
INSIDE static inline __attribute__((always_inline)) bool
switch_begin(struct worker *worker, const struct thrum_unit *self, struct thrum_unit **next) {
    thrum_assert(regions_open() == 1);
    bool stays = false;
    if (!unit_ready_to_follow(worker, self, *next)) {
        *next = worker->loop;
        stays =
            *next ==
            self; /* it runs what is not ready itself; and its sp, as it runs, is that of an earlier switch */
    }
    thrum_assert(stays || *next != self || load_relaxed(&self->sp) == UNIT_ON_CPU ||
                 load_relaxed(&self->sp) == UNIT_KEPT);
    worker->current = *next; /* also where it stays: order_look_back has told which unit was chosen */
    count_one(&worker->counters.switches);
    return !stays;
}

INSIDE static inline void switch_as(struct worker *worker, struct thrum_unit *self, struct thrum_unit *next,
                                    enum thrum_trace_kind why) {
    if (!switch_begin(worker, self, &next))
        return;
    if (switch_is_slow(worker))
        switch_slow(worker, self, next, why);
    else
        arch_switch(&self->sp, next);
}

/* Likewise, to a unit that begins a thread on its stack; and of one that rests between two threads (arch_context.h): when it is
 * resumed its floating-point control words are what they were when it began. */
INSIDE static inline void switch_to_begin(struct worker *worker, struct thrum_unit *self,
                                          struct thrum_unit *next, enum thrum_trace_kind why) {
    if (!switch_begin(worker, self, &next))
        return;
    if (switch_is_slow(worker))
        switch_slow(worker, self, next, why);
    else
        arch_switch_begin(&self->sp, next);
}
INSIDE static inline __attribute__((always_inline)) void switch_to_rest(struct worker *worker,
                                                                        struct thrum_unit *self,
                                                                        struct thrum_unit *next,
                                                                        enum thrum_trace_kind why) {
    if (!switch_begin(worker, self, &next))
        return;
    if (switch_is_slow(worker)) {
        arch_float_control_reset(self->float_control);
        switch_slow(worker, self, next, why);
    } else {
        arch_rest(&self->sp, next, self->float_control);
    }
}

INSIDE static inline void switch_to(struct worker *worker, struct thrum_unit *self, struct thrum_unit *next) {
    if (__builtin_expect(is_in_region(), 0))
        unit_waits_in_region(awaits_kind(load_relaxed(&self->awaits)));
    switch_as(worker, self, next, THRUM_TRACE_WAIT);
}

/* --- handles ------------------------------------------------------------------------------------------ */

/* The threads that handles and pools name belong to a runtime that has ended. */
static inline bool runtime_has_ended(void) {
    return load_relaxed(&runtime.gone);
}

/* What public functions answer before they read a handle: 0; EINVAL: it is NULL; ESRCH: thrum_fini has given back all
 * descriptors. (In a child of fork they are still there.) */
static inline int handle_check(const struct thrum_unit *unit) {
    if (__builtin_expect(unit == NULL, 0))
        return EINVAL;
    return __builtin_expect(runtime_has_ended(), 0) ? ESRCH : 0;
}

/* --- waiting and waking ------------------------------------------------------------------------------- */

/* external.c. The unit is one that stands for an external kernel thread. */
INSIDE void unit_wake_external(struct thrum_unit *unit);

/* external.c. Wakes a solo worker, by any thread; waits, by itself on its loop, until its unit is woken. */
INSIDE void solo_wake(struct worker *solo);
INSIDE void solo_wait(struct worker *self);

/* The caller's unit. On an external kernel thread one that stands for it (worker is NULL then). _self: not yet announced, and about
 * to be. _identity: to be compared alone, as it may have announced itself, and may have been woken. */
INSIDE struct thrum_unit *unit_external(void);
INSIDE struct thrum_unit *unit_external_identity(void);

INSIDE static inline struct thrum_unit *unit_self(struct worker *worker) {
    return __builtin_expect(worker != NULL, 1) ? worker->current : unit_external();
}

INSIDE static inline struct thrum_unit *unit_identity(struct worker *worker) {
    return __builtin_expect(worker != NULL, 1) ? worker->current : unit_external_identity();
}

/* For inspection: the caller's unit, but NULL on an external kernel thread, for which it is not free, and where it is
 * preempted in between. (Moved away and back again between two of these loads it would get another unit's: only a
 * report depends on it.) */
static inline struct thrum_unit *unit_to_note(void) {
    const struct worker *worker = worker_here();
    if (__builtin_expect(worker == NULL, 0))
        return NULL;
    struct thrum_unit *self = load_relaxed(&worker->current);
    return worker_here() == worker ? self : NULL;
}

/* It goes where others find it. */
static inline void unit_announce(struct thrum_unit *self) {
    store_relaxed(&self->sp, UNIT_ON_CPU);
}

/* Likewise, to wait there for what others do. */
static inline void unit_await(struct thrum_unit *self, enum awaits kind, const void *object) {
    store_relaxed(&self->awaits, awaits_make(kind, object));
    unit_announce(self);
}

/* ... or for a deadline, if that comes (cancel.h: CANCEL_FAR does not). */
static inline void unit_await_until(struct thrum_unit *self, enum awaits kind, const void *object,
                                    uint64_t deadline) {
    uint64_t timed = deadline < TIMER_NEVER - 1 ? AWAITS_TIMED : 0;
    store_relaxed(&self->awaits, awaits_make(kind, object) | timed);
    unit_announce(self);
}

/* It does not wait, or no thread has announced the end of its wait. */
static inline void unit_await_no_more(struct thrum_unit *self) {
    store_relaxed(&self->awaits, 0);
}

INSIDE void unit_block_external(struct thrum_unit *self);
/* False: it was not woken before the deadline (ns, CLOCK_MONOTONIC). */
INSIDE bool unit_block_external_until(struct thrum_unit *self, uint64_t deadline);

INSIDE static inline void unit_block(struct worker *worker, struct thrum_unit *self) {
    if (__builtin_expect(worker == NULL, 0)) {
        unit_block_external(self);
        return;
    }
    struct thrum_unit *next = pick(worker);
    switch_to(worker, self, next != NULL ? next : worker->loop);
}

INSIDE void unit_wake_elsewhere(struct worker *worker, struct thrum_unit *unit);
/* Tells that it is about to be woken. */
INSIDE void unit_wake_watched(struct worker *worker, struct thrum_unit *unit);

/* `worker` is the caller's, or NULL. */
INSIDE static inline void unit_wake(struct worker *worker, struct thrum_unit *unit) {
    if (__builtin_expect(watch_on, 0))
        unit_wake_watched(worker, unit);
    unit_await_no_more(unit);
    if (__builtin_expect(worker == NULL || load_relaxed(&unit->kind) != UNIT_ULT, 0))
        unit_wake_elsewhere(worker, unit);
    else
        run_queue_push(worker, unit);
}

/* A new one: it runs there only. False: there is no such worker, or it is about to leave. */
bool unit_bind(struct thrum_unit *unit, uint32_t worker);
/* migrate.c. The unit, which is the caller or has not begun, runs on this solo worker only; its wakers find it there. And no
 * longer: the caller has its former place, where no thread has enqueued it. */
INSIDE void unit_set_solo(struct thrum_unit *unit, struct worker *solo);
INSIDE void unit_unset_solo(struct thrum_unit *self);
/* migrate.c. The caller moves to the place that it was given. Inside, on the worker there when it returns. */
INSIDE void unit_move(struct worker *worker, struct thrum_unit *self);
/* migrate.c's, in a child of fork. */
void migrate_fork_child(void);

/* True: it was suspended and the caller must run it. False: it continues when it next means to wait. */
bool unit_take_suspended(struct thrum_unit *unit);

/* --- life of a worker --------------------------------------------------------------------------------- */

/* 0 or ENOMEM. */
int worker_init(struct worker *worker, uint32_t id);
void worker_destroy(struct worker *worker);
/* A solo one: there is nothing to destroy. */
void worker_init_solo(struct worker *worker);

/* CLOSED: before it runs, again when it had been stopped. OPEN: when it is certain that it runs. LEAVING: without it,
 * or now. */
void worker_ready(struct worker *worker);
void worker_open(struct worker *worker);
INSIDE void worker_close(struct worker *worker);

/* The caller becomes this worker and runs units until the runtime stops, or this worker must leave. */
void worker_loop(struct worker *worker);

/* Asks it to leave when the unit that it runs waits, yields or ends. False: there are threads that run nowhere else. */
INSIDE bool worker_ask_to_leave(struct worker *worker);

/* Its loop is over: what is in its queues, and what it has kept for later use, goes to all. */
INSIDE void worker_hand_over(struct worker *worker);

/* One more thread runs on this one only, which has to stay as long. False: it is about to leave, or has left. */
bool worker_bind(struct worker *worker);
void worker_unbind(struct worker *worker);

/* Or has left, or never was one like the others. */
static inline bool worker_is_leaving(const struct worker *worker) {
    return load_acquire(&worker->stay) >= WORKER_LEAVING;
}

static inline bool worker_relieves(const struct worker *worker) {
    return load_relaxed(&worker->stay) == WORKER_RELIEVES;
}

static inline bool worker_is_solo(const struct worker *worker) {
    return load_relaxed(&worker->stay) == WORKER_SOLO;
}

/* The caller's, for timer_start(): NULL where the caller is external or has a kernel thread of its own. No other thread would
 * fire what is in the store of a solo worker. */
static inline struct worker *worker_for_timers(struct worker *worker) {
    return worker != NULL && !worker_is_solo(worker) ? worker : NULL;
}

/* Its loop must do something else than run units: it is stopped, or another scheduler is wanted. */
static inline bool worker_is_called_away(const struct worker *worker) {
    return load_relaxed(&runtime.stopping) || worker_is_leaving(worker) ||
           load_acquire(&worker->wanted_sched) != worker->sched;
}

/* The caller is a loop or a scheduler: runs the unit until it waits, yields or ends. */
INSIDE void worker_run(struct worker *worker, struct thrum_unit *unit);

/* A tasklet that is never joined, for the caller to wake; NULL without memory. */
INSIDE struct thrum_unit *unit_make_tasklet(struct worker *worker, void *(*fn)(void *));

/* On whatever stack there is: the caller's. Inside; outside while it runs. */
INSIDE void tasklet_run(struct worker *worker, struct thrum_unit *tasklet);

/* The same without saying that it has ended. */
INSIDE void tasklet_call(struct worker *worker, struct thrum_unit *tasklet);

/* Something to run that is in no pool. NULL: the runtime stops, or `sched` (NULL: none) has work again or must stop.
 * Searches, parks, searches. */
INSIDE struct thrum_unit *worker_search(struct worker *worker, struct thrum_sched *sched);

#endif
