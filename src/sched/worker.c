// SPDX-License-Identifier: Apache-2.0
/* See worker.h. */
#include "sched/worker.h"

#include <errno.h>

#include "base/assert.h"
#include "os/futex.h"
#include "os/membarrier.h"
#include "os/ticks.h"
#include "os/topology.h"
#include "sched/order.h"
#include "sched/pool.h"
#include "sched/preempted.h"
#include "sched/scheduler.h"
#include "sched/timekeeper.h"
#include "sched/trim.h"

__thread struct worker *thrum_worker;
__thread uint32_t thrum_nopreempt = NOPREEMPT_NOT_PENDING;

bool tcb_is_cheap;
bool carriers_are_used;
bool ticks_are_possible;
struct exception_globals tcb_own_exceptions = {.caught = &tcb_own_exceptions};

struct runtime runtime;

enum { SEARCH_US = 100, RELAX = 32, FAIR_US = 100, QUEUED_AFTER_THEFT = 64, EXTERNAL_LOOKS_US = 10 };

/* --- choosing ----------------------------------------------------------------------------------------- */

/* Oldest first, from where LIFO order would let them starve; each of the four is first in turn. The oldest of the
 * deque waits for thieves, which may be busy or absent. */
static struct thrum_unit *pick_starving(struct worker *worker) {
    struct thrum_unit *unit = NULL;
    worker->turn++;
    for (unsigned i = 0; i < 4 && unit == NULL; i++) {
        switch ((worker->turn + i) % 4) {
        case 0: unit = fifo_pop(&worker->inbox); break;
        case 1: unit = fifo_pop(&runtime.shared); break;
        case 2: unit = deque_pop_oldest(&worker->deque); break;
        default: unit = yield_ring_pop(&worker->yields); break;
        }
    }
    return unit;
}

/* The caller of worker_search has something else to do; the loop itself has, with `sched` NULL. */
static bool is_called_away(const struct worker *worker, const struct thrum_sched *sched) {
    return load_relaxed(&runtime.stopping) || worker_is_leaving(worker) ||
           load_acquire(&worker->wanted_sched) != worker->sched ||
           (sched != NULL && (scheduler_has_work(sched) || load_acquire(&sched->stopping)));
}

bool worker_is_called_away(const struct worker *worker) {
    return is_called_away(worker, NULL);
}

/* By the clock, not by the number of picks: the oldest of the deque is a branch of its own, and if each few picks began
 * one, deep recursion would have thousands of stacks in use. */
static bool is_time_to_be_fair(struct worker *worker) {
    uint64_t now = arch_ticks();
    if (now - worker->fair_since < FAIR_US * ticks_per_us())
        return false;
    worker->fair_since = now;
    return true;
}

/* One that has taken a block along gives back another as it is resumed (preempt/lend.c). */
static struct thrum_unit *pick_preempted(struct worker *worker) {
    struct thrum_unit *unit = preempted_take(worker, worker, NULL);
    worker->owes = unit != NULL && !load_relaxed(&unit->took_tcb);
    if (worker->owes)
        worker->until_slow = 1;
    return unit;
}

struct thrum_unit *pick_slow(struct worker *worker) {
    uint32_t picks = FAIR_EVERY;
    if (__builtin_expect(is_called_away(worker, NULL), 0))
        worker->has_scheduler = true; /* back to the loop */
    if (__builtin_expect(!timers_are_empty(&worker->timers) || load_relaxed(&runtime.orphans), 0))
        picks = timers_look(worker);
    trim_look(worker);
    worker->until_slow = worker->has_scheduler ? 1 : picks;
    if (worker->has_scheduler)
        return NULL;
    if (__builtin_expect(worker->owes, 0)) {
        struct thrum_unit *preempted = pick_preempted(worker);
        if (preempted != NULL)
            return preempted;
    }
    struct thrum_unit *unit = is_time_to_be_fair(worker) ? pick_starving(worker) : NULL;
    return unit != NULL ? unit : pick_own(worker);
}

void run_queue_overflow(struct thrum_unit *unit) {
    fifo_push(&runtime.shared, unit);
}

uint64_t worker_random(struct worker *worker) { /* Marsaglia's xorshift64 */
    uint64_t x = worker->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return worker->random = x;
}

static struct thrum_unit *steal_from(struct worker *victim) {
    struct thrum_unit *unit = NULL;
    if (!deque_is_empty(&victim->deque))
        unit = deque_steal(&victim->deque);
    if (unit == NULL && !yield_ring_is_empty(&victim->yields))
        unit = yield_ring_pop(&victim->yields);
    return unit;
}

/* A stolen unit that waited for a child created there will create more. If it creates many that do little, each would
 * be created on another worker than the one before, at the price of moving there. So the next ones are queued to be
 * stolen instead. */
static void note_theft(struct worker *worker, const struct thrum_unit *unit) {
    if (unit->called_child != NULL) {
        worker->stolen = unit;
        worker->queues = QUEUED_AFTER_THEFT;
    }
    count_one(&worker->counters.steals);
}

/* Of those on its own NUMA node, or of the others. */
static struct thrum_unit *steal_where(struct worker *worker, bool near) {
    uint32_t count = load_acquire(&runtime.count), at = (uint32_t)(worker_random(worker) % count);
    uint8_t node = load_relaxed(&runtime.node_of[worker->id]);
    for (uint32_t i = 0; i < count; i++, at = at + 1 == count ? 0 : at + 1) {
        struct worker *victim = runtime.workers[at];
        if (victim == worker || (load_relaxed(&runtime.node_of[at]) == node) != near)
            continue;
        struct thrum_unit *unit = steal_from(victim);
        if (unit != NULL) {
            note_theft(worker, unit);
            trace_steal(worker, unit, at);
            return unit;
        }
    }
    return NULL;
}

static struct thrum_unit *steal(struct worker *worker) {
    struct thrum_unit *unit = steal_where(worker, true);
    return unit != NULL || runtime.nodes <= 1 ? unit : steal_where(worker, false);
}

static struct thrum_unit *search_round(struct worker *worker) {
    trim_look(worker);
    timers_look_everywhere(worker);
    struct thrum_unit *unit = worker->has_scheduler ? pick_starving(worker) : pick(worker);
    if (unit == NULL)
        unit = fifo_pop(&runtime.shared);
    return unit != NULL ? unit : steal(worker);
}

struct thrum_unit *pick_fairly(struct worker *worker) {
    if (!timers_are_empty(&worker->timers) || load_relaxed(&runtime.orphans))
        timers_look(worker);
    trim_look(worker);
    if (is_called_away(worker, NULL))
        worker->has_scheduler = true;
    if (worker->has_scheduler)
        return NULL;
    struct thrum_unit *unit = pick_starving(worker);
    return unit != NULL ? unit : steal(worker);
}

/* --- units -------------------------------------------------------------------------------------------- */

/* A unit that is just leaving is waited for there (context.S). The exception is the primary on carriers, which then
 * keeps its kernel thread: it may be leaving the worker that relieved its own (preempt/relief.c). */
static void *sp_of(const struct thrum_unit *unit) {
    void *sp = load_relaxed(&unit->sp);
    if (sp == UNIT_ON_CPU && carriers_are_used && unit->tcb != NULL)
        while ((sp = load_acquire(&unit->sp)) == UNIT_ON_CPU)
            arch_relax();
    return sp;
}

bool unit_make_frame(struct worker *worker, struct thrum_unit *unit) {
    void *sp = sp_of(unit);
    if ((intptr_t)sp >= 0)
        return true;
    if (sp == UNIT_KEPT) {
        worker->kept = unit;
        return false;
    }
    if (load_relaxed(&unit->kind) == UNIT_TASKLET) {
        worker->tasklet = unit; /* the loop runs it */
        return false;
    }
    if (unit->stack_top == NULL)
        unit->stack_top = depot_get(&stack_depots[unit->stack_class], &worker->stacks[unit->stack_class]);
    if (unit->stack_top == NULL) { /* it waits until another has ended and left its stack */
        unit_wake_elsewhere(NULL, unit);
        return false;
    }
    if (__builtin_expect(unit->measured, 0))
        stack_give_back(unit->stack_top, unit->stack_class);
    store_relaxed(&unit->sp, arch_frame_make(unit_first_frame(unit), unit));
    return true;
}

char *unit_stack_low(const struct thrum_unit *unit) {
    return unit->stack_class == STACK_CLASS_USER ? unit_head_of(unit)->low
                                                 : stack_low(unit->stack_top, unit->stack_class);
}

struct annotate_stack unit_stack(const struct worker *worker, const struct thrum_unit *unit) {
    if (unit->stack_top == NULL)
        return worker->annotate.stack;
    char *low = unit_stack_low(unit);
    return (struct annotate_stack){low, (size_t)(unit->stack_top - low)};
}

/* Inlined, as annotate.h wants it. */
static inline __attribute__((always_inline)) void depart(struct worker *worker, struct thrum_unit *self,
                                                         const struct thrum_unit *next,
                                                         struct annotate_left *left,
                                                         enum thrum_trace_kind why) {
    trace_run(worker, self, why);
    self->exceptions.caught = worker->exceptions->caught;
    self->exceptions.uncaught = worker->exceptions->uncaught;
    *worker->exceptions = (struct exception_globals){NULL, 0};
    if (annotate_on)
        annotate_leave(left, &worker->annotate, unit_stack(worker, next));
}

static inline __attribute__((always_inline)) void arrive(struct thrum_unit *self,
                                                         const struct annotate_left *left) {
    if (annotate_on)
        annotate_resume(left);
    annotate_happens_after(self);
    trace_run(worker_here(), self, THRUM_TRACE_RESUME);
    struct exception_globals *exceptions = worker_here()->exceptions;
    exceptions->caught = self->exceptions.caught;
    exceptions->uncaught = self->exceptions.uncaught;
}

static void leave_own(struct worker *worker, const struct thrum_unit *self) {
    if (self->is_primary)
        primary_leaves(worker);
    restore_tcb(worker);
}

static void resume_with_own(struct worker *worker, const struct thrum_unit *self) {
    install_tcb(worker, self);
    if (self->is_primary)
        primary_comes(worker);
}

__attribute__((noinline)) void switch_slow(struct worker *worker, struct thrum_unit *self,
                                           struct thrum_unit *next, enum thrum_trace_kind why) {
    struct annotate_left left;
    bool has_own = self->tcb != NULL;
    if (has_own && carriers_are_used) {
        carrier_keep(worker, self, next, NULL, why);
        return;
    }
    if (has_own)
        leave_own(worker, self);
    depart(worker, self, next, &left, why);
    arch_switch(&self->sp, next);
    arrive(self, &left);
    if (has_own)
        resume_with_own(worker_here(), self);
}

__attribute__((noinline)) void call_slow(struct worker *worker, struct thrum_unit *self,
                                         struct thrum_unit *child, struct thrum_unit *parent) {
    struct annotate_left left;
    bool has_own = self->tcb != NULL;
    if (has_own && carriers_are_used) {
        thrum_assert(parent == NULL); /* it is the primary, which is bound */
        carrier_keep(worker, self, child, NULL, THRUM_TRACE_WAIT);
        return;
    }
    if (has_own && !watch_on) { /* its exceptions stay in its block, and there are none in its worker's */
        leave_own(worker, self);
        arch_call(child, parent, &self->sp, unit_first_frame(child));
        resume_with_own(worker_here(), self);
        return;
    }
    if (has_own)
        leave_own(worker, self);
    annotate_happens_before(child);
    if (annotate_on)
        annotate_make(&worker->annotate);
    depart(worker, self, child, &left, parent != NULL ? THRUM_TRACE_CHILD : THRUM_TRACE_WAIT);
    arch_call(child, parent, &self->sp, unit_first_frame(child));
    arrive(self, &left);
    if (has_own)
        resume_with_own(worker_here(), self);
}

/* `wake` of an external kernel thread:
 *
 *   RUNS   -> SLEEPS  itself (cas), before it sleeps on the word
 *   RUNS   -> WOKEN   the waker (exchange): nothing sleeps there, and no system call is made
 *   SLEEPS -> WOKEN   the waker, which then wakes it
 *   any    -> RUNS    itself, before it announces itself the next time
 *
 * Either the cas comes first, and the exchange sees SLEEPS; or the exchange does, and the cas fails. Modelled in
 * tests/model/external.pml. */
enum { EXTERNAL_RUNS, EXTERNAL_WOKEN, EXTERNAL_SLEEPS };

struct thrum_unit *unit_external(void) {
    static __thread struct thrum_unit external = {.kind = UNIT_EXTERNAL};
    store_relaxed(&external.wake, EXTERNAL_RUNS);
    return &external;
}

/* For as long as to sleep and to be woken takes the kernel: so it takes at most twice the time that the better choice would.
 * With one CPU the waker could not run meanwhile. Where it was in vain (the wait is long, or others have the CPUs) the next waits
 * do without, twice as many each time. */
static void await_by_looking(const struct thrum_unit *self) {
    enum { MOST = 255 };
    static __thread struct { uint32_t without, next; } looks;
    if (!runtime.externals_look)
        return;
    if (looks.without > 0) {
        looks.without--;
        return;
    }
    for (uint64_t since = arch_ticks(); arch_ticks() - since < EXTERNAL_LOOKS_US * ticks_per_us();) {
        if (load_acquire(&self->wake) != EXTERNAL_RUNS) {
            looks.next = 0;
            return;
        }
        arch_relax();
    }
    looks.next = looks.next < MOST ? 2 * looks.next + 1 : MOST;
    looks.without = looks.next;
}

/* False: it has been woken already. (A wait whose deadline is over may come here again: then it is as it was.) */
static bool is_to_sleep(struct thrum_unit *self) {
    uint32_t runs = EXTERNAL_RUNS;
    return cas_acq_rel(&self->wake, &runs, EXTERNAL_SLEEPS) || runs == EXTERNAL_SLEEPS;
}

void unit_block_external(struct thrum_unit *self) {
    await_by_looking(self);
    if (is_to_sleep(self))
        while (load_acquire(&self->wake) == EXTERNAL_SLEEPS)
            futex_wait(&self->wake, EXTERNAL_SLEEPS);
    annotate_happens_after(self);
}

bool unit_block_external_until(struct thrum_unit *self, uint64_t deadline) {
    struct timespec time = timer_spec(deadline);
    if (is_to_sleep(self))
        while (load_acquire(&self->wake) == EXTERNAL_SLEEPS)
            if (futex_wait_until(&self->wake, EXTERNAL_SLEEPS, CLOCK_MONOTONIC, &time) == -ETIMEDOUT)
                return load_acquire(&self->wake) != EXTERNAL_SLEEPS;
    annotate_happens_after(self);
    return true;
}

__attribute__((noinline)) void unit_wake_watched(struct worker *worker, struct thrum_unit *unit) {
    annotate_happens_before(unit);
    trace_wake(worker, unit);
}

void unit_wake_elsewhere(struct worker *worker, struct thrum_unit *unit) {
    enum unit_kind place = unit_place(unit);
    struct thrum_pool *pool =
        place == UNIT_POOLED || place == UNIT_TASKLET ? load_acquire(&unit->pool) : NULL;
    if (place == UNIT_EXTERNAL) {
        /* From the exchange on it may be gone, the word with it. A futex on memory that is not mapped any more is an
         * error that is ignored; one on memory that is used for something else now wakes a thread that looks again. */
        if (exchange_acq_rel(&unit->wake, (uint32_t)EXTERNAL_WOKEN) == EXTERNAL_SLEEPS)
            futex_wake(&unit->wake, 1);
    } else if (place == UNIT_BOUND && __builtin_expect(unit->is_primary, 0) &&
               (pool = load_acquire(&unit->pool)) != NULL) {
        pool_push(pool, unit); /* a front end's (front.h), which sees that it runs at home */
    } else if (place == UNIT_BOUND) {
        struct worker *home = load_relaxed(&unit->bound);
        fifo_push(&home->inbox, unit);
        idle_wake_this(&runtime.idle, &home->parking);
    } else if (pool != NULL) {
        pool_push(pool, unit);
    } else if (worker != NULL) {
        run_queue_push(worker, unit);
    } else {
        fifo_push(&runtime.shared, unit);
        idle_wake_check(&runtime.idle);
    }
}

/* --- the loop ----------------------------------------------------------------------------------------- */

bool has_work_for_any(void) {
    if (!fifo_is_empty(&runtime.shared) || trim_is_wanted())
        return true;
    for (uint32_t i = 0; i < load_acquire(&runtime.count); i++) {
        const struct worker *worker = runtime.workers[i];
        if (!deque_is_empty(&worker->deque) || !yield_ring_is_empty(&worker->yields))
            return true;
    }
    return false;
}

/* For a worker that is about to park: is there something that it would run? */
static bool work_somewhere(void) {
    const struct worker *self = worker_here();
    if (load_acquire(&runtime.stopping) || worker_is_leaving(self) || !fifo_is_empty(&self->inbox))
        return true;
    if (self->idle_sched != NULL &&
        (scheduler_has_work(self->idle_sched) || load_acquire(&self->idle_sched->stopping)))
        return true;
    return load_acquire(&self->wanted_sched) != self->sched || has_work_for_any();
}

static uint64_t park_until(void) {
    const struct thrum_sched *sched = worker_here()->idle_sched;
    uint64_t timers = timekeeper_until(), pools = sched != NULL ? scheduler_wait_until(sched) : TIMER_NEVER;
    return timers < pools ? timers : pools;
}

/* The caller's CPU may be taken while it searches: it has nothing that others wait for. */
struct thrum_unit *worker_search(struct worker *worker, struct thrum_sched *sched) {
    if (__builtin_expect(runtime.nodes > 1, 0))
        store_relaxed(&runtime.node_of[worker->id], topology_here());
    bool spin = idle_search(&runtime.idle);
    if (__builtin_expect(load_relaxed(&worker->tick.state) == TICK_REST, 0))
        tick_end(worker);
    trace_worker(worker, THRUM_TRACE_SEARCH);
    store_release(&worker->idle_sched, sched);
    for (uint64_t since = arch_ticks();;) {
        struct thrum_unit *unit = search_round(worker);
        if (unit != NULL || is_called_away(worker, sched)) {
            store_relaxed(&worker->idle_sched, NULL);
            timekeeper_leave(worker);
            idle_found(&runtime.idle, has_work_for_any);
            trace_worker(worker, THRUM_TRACE_FOUND);
            return unit;
        }
        for (int i = 0; i < RELAX; i++)
            arch_relax();
        if (spin && arch_ticks() - since < SEARCH_US * ticks_per_us())
            continue;
        count_one(&worker->counters.parks);
        trace_worker(worker, THRUM_TRACE_PARK);
        deque_shrink(&worker->deque);
        idle_park(&runtime.idle, &worker->parking, work_somewhere, park_until);
        trace_worker(worker, THRUM_TRACE_UNPARK);
        timekeeper_wakes(worker);
        since = arch_ticks();
    }
}

/* On the loop: what another unit left for it. */
static void run_leftovers(struct worker *worker) {
    if (worker->ended != NULL) {
        struct thrum_unit *ended = worker->ended;
        worker->ended = NULL;
        annotate_stack_gone(unit_head_of(ended)->annotation, unit_stack(worker, ended));
        unit_publish_end(worker, ended);
    }
    while (worker->tasklet != NULL) {
        struct thrum_unit *tasklet = worker->tasklet;
        worker->tasklet = NULL;
        worker_wants_ticks(worker); /* the loop may have been found here, with nothing to do */
        tasklet_run(worker, tasklet);
    }
}

/* ... and those that keep a kernel thread: one after another, until the loop `self`, the caller, is not gone to for such. */
static __attribute__((noinline)) void go_to_kept(struct worker *worker, struct thrum_unit *self) {
    for (struct thrum_unit *kept; (kept = worker->kept) != NULL; worker = worker_here()) {
        worker->kept = NULL;
        worker_wants_ticks(worker);
        carrier_go_to(worker, self, kept);
        run_leftovers(worker_here());
    }
}

/* Goes back to the loop `self`, which the caller is, when the unit waits, yields or ends. Inside. */
void worker_run(struct worker *worker, struct thrum_unit *unit) {
    struct thrum_unit *self = worker->current, *outer = worker->loop;
    run_leftovers(worker); /* the loop may be new, and have been gone to for that */
    if (__builtin_expect(worker->is_short, 0)) {
        worker->in_order = false;
        if ((unit = tcb_instead(worker, unit)) == NULL)
            return;
    }
    worker->loop = self;
    if (__builtin_expect(worker->kept != NULL, 0))
        go_to_kept(worker, self);
    worker = worker_here();
    worker_wants_ticks(worker);
    if (__builtin_expect(worker->in_order, 0))
        order_look_back(worker, unit);
    switch_as(worker, self, unit, THRUM_TRACE_HOST);
    worker = worker_here();
    if (__builtin_expect(worker->kept != NULL, 0)) {
        run_leftovers(worker);
        go_to_kept(worker, self);
        worker = worker_here();
    }
    worker->loop = outer;
    run_leftovers(worker);
}

static void loop_by_default(struct worker *worker) {
    while (!is_called_away(worker, NULL)) {
        worker->has_scheduler = false; /* it may have been called away, and called back before it got here */
        enter();
        struct thrum_unit *unit = worker_search(worker, NULL);
        if (unit != NULL)
            worker_run(worker, unit);
        leave();
    }
}

void worker_loop(struct worker *worker) {
    enter();
    run_leftovers(worker); /* gone to for that, it begins only now */
    go_to_kept(worker, &worker->base);
    leave();
    while (!load_relaxed(&runtime.stopping) && !worker_is_leaving(worker)) {
        if (load_acquire(&worker->wanted_sched) != NULL)
            scheduler_run(worker);
        else
            loop_by_default(worker);
    }
}

/* --- life --------------------------------------------------------------------------------------------- */

int worker_init(struct worker *worker, uint32_t id) {
    worker->id = id;
    worker->aside = &worker->base;
    worker->random = UINT64_C(0x9e3779b97f4a7c15) * (id + 1);
    worker->base.kind = UNIT_LOOP;
    timers_init(&worker->timers);
    worker_ready(worker);
    int error = deque_init(&worker->deque, runtime.fenced);
    if (error == 0)
        trace_ring_init(&worker->trace);
    return error;
}

void worker_ready(struct worker *worker) {
    worker->until_slow = FAIR_EVERY;
    worker->has_scheduler = false;
    worker->current = worker->loop = &worker->base;
    worker->exceptions = watch_on ? &worker->no_exceptions : NULL;
    store_release(&worker->stay, WORKER_CLOSED);
}

void worker_open(struct worker *worker) {
    store_release(&worker->stay, WORKER_OPEN);
}

void worker_close(struct worker *worker) {
    lock_acquire(&worker->sched_lock);
    store_release(&worker->stay, WORKER_LEAVING);
    scheduler_want_locked(worker, NULL);
    lock_release(&worker->sched_lock);
    idle_wake_this(&runtime.idle, &worker->parking);
}

/* Either this sees a thread that is bound there, or worker_bind sees CLOSED. */
bool worker_ask_to_leave(struct worker *worker) {
    store_seq_cst(&worker->stay, WORKER_CLOSED);
    bool leaves = load_seq_cst(&worker->bound_units) == 0;
    if (leaves)
        worker_close(worker);
    else
        worker_open(worker);
    return leaves;
}

bool worker_bind(struct worker *worker) {
    fetch_add_seq_cst(&worker->bound_units, 1U);
    if (load_seq_cst(&worker->stay) == WORKER_OPEN)
        return true;
    worker_unbind(worker);
    return false;
}

void worker_unbind(struct worker *worker) {
    fetch_sub_release(&worker->bound_units, 1U);
}

static void worker_flush(struct worker *worker) {
    for (unsigned i = 0; i < STACK_CLASSES; i++)
        depot_flush(&stack_depots[i], &worker->stacks[i]);
    depot_flush(&unit_depot, &worker->units);
}

static void give_away(struct thrum_unit *unit) {
    fifo_push(&runtime.shared, unit);
    idle_wake_check(&runtime.idle);
}

/* Thieves are at it meanwhile: one that is faster has what there is. */
void worker_hand_over(struct worker *worker) {
    struct thrum_unit *unit;
    while (!deque_is_empty(&worker->deque))
        if ((unit = deque_pop_oldest(&worker->deque)) != NULL)
            give_away(unit);
    while ((unit = yield_ring_pop(&worker->yields)) != NULL)
        give_away(unit);
    worker_flush(worker);
    trim_tell();
    if (!timers_are_empty(&worker->timers)) {
        store_release(&runtime.orphans, 1);
        __atomic_thread_fence(__ATOMIC_SEQ_CST); /* before the resting workers are read */
        tick_wake_resting();
    }
}

void worker_destroy(struct worker *worker) {
    worker_flush(worker);
    trace_ring_destroy(&worker->trace);
    deque_destroy(&worker->deque);
}
