// SPDX-License-Identifier: Apache-2.0
/* See worker.h. */
#include "sched/worker.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "os/futex.h"
#include "os/membarrier.h"
#include "os/ticks.h"
#include "sched/pool.h"
#include "sched/scheduler.h"
#include "sched/timekeeper.h"

__thread struct worker *thrum_worker;
__thread uint32_t thrum_nopreempt = NOPREEMPT_NOT_PENDING;

struct scheduler scheduler;

enum { SEARCH_US = 100, RELAX = 32 };

/* Nothing asks for a preemption yet, so none can be pending. */
void preempt_pending(void) {
    thrum_assert(false);
}

/* --- choosing ----------------------------------------------------------------------------------------- */

/* Oldest first, from where LIFO order would let them starve; each of the four is first in turn. The
 * oldest of the deque waits for thieves, who may be busy or none. */
static struct thrum_unit *pick_starving(struct worker *worker) {
    struct thrum_unit *unit = NULL;
    worker->turn++;
    for (unsigned i = 0; i < 4 && unit == NULL; i++) {
        switch ((worker->turn + i) % 4) {
        case 0: unit = fifo_pop(&worker->inbox); break;
        case 1: unit = fifo_pop(&scheduler.shared); break;
        case 2: unit = deque_pop_oldest(&worker->deque); break;
        default: unit = yield_ring_pop(&worker->yields); break;
        }
    }
    return unit;
}

struct thrum_unit *pick_slow(struct worker *worker) {
    uint32_t picks = FAIR_EVERY;
    if (__builtin_expect(load_relaxed(&scheduler.stopping), 0))
        worker->obeys = true; /* back to the loop, and out */
    if (__builtin_expect(!timers_are_empty(&worker->timers), 0))
        picks = timers_look(worker);
    worker->until_slow = worker->obeys ? 1 : picks;
    if (worker->obeys)
        return NULL;
    struct thrum_unit *unit = pick_starving(worker);
    return unit != NULL ? unit : pick_own(worker);
}

void run_queue_overflow(struct thrum_unit *unit) {
    fifo_push(&scheduler.shared, unit);
}

static uint64_t next_random(struct worker *worker) { /* Marsaglia's xorshift64 */
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

static struct thrum_unit *steal(struct worker *worker) {
    uint32_t count = scheduler.count, at = (uint32_t)(next_random(worker) % count);
    for (uint32_t i = 0; i < count; i++, at = at + 1 == count ? 0 : at + 1) {
        struct worker *victim = scheduler.workers[at];
        if (victim == worker)
            continue;
        struct thrum_unit *unit = steal_from(victim);
        if (unit != NULL) {
            worker->counters.steals++;
            return unit;
        }
    }
    return NULL;
}

static struct thrum_unit *look_around(struct worker *worker) {
    timers_look_everywhere(worker);
    struct thrum_unit *unit = worker->obeys ? pick_own(worker) : pick(worker);
    if (unit == NULL)
        unit = fifo_pop(&scheduler.shared);
    return unit != NULL ? unit : steal(worker);
}

/* --- units -------------------------------------------------------------------------------------------- */

bool unit_make_frame(struct worker *worker, struct thrum_unit *unit) {
    if (unit->kind == UNIT_TASKLET) {
        worker->tasklet = unit; /* the loop runs it */
        return false;
    }
    if (unit->stack_top == NULL)
        unit->stack_top = depot_get(&stack_depots[unit->stack_class], &worker->stacks[unit->stack_class]);
    if (unit->stack_top == NULL) {
        fifo_push(&scheduler.shared, unit); /* until another has ended and left its stack */
        return false;
    }
    store_relaxed(&unit->sp, arch_frame_make(unit->stack_top, unit));
    return true;
}

struct annotate_stack unit_stack(const struct worker *worker, const struct thrum_unit *unit) {
    if (unit->stack_top == NULL)
        return worker->annotate.stack;
    char *low = stack_low(unit->stack_top, unit->stack_class);
    return (struct annotate_stack){low, (size_t)(unit->stack_top - low)};
}

/* Inlined, as annotate.h wants it. */
static inline __attribute__((always_inline)) void depart(struct worker *worker, struct thrum_unit *self,
                                                         const struct thrum_unit *next,
                                                         struct annotate_left *left) {
    self->exceptions.caught = worker->exceptions->caught;
    self->exceptions.uncaught = worker->exceptions->uncaught;
    *worker->exceptions = (struct exception_globals){NULL, 0};
    if (annotate_on)
        annotate_leave(left, &worker->annotate, unit_stack(worker, next));
}

static inline __attribute__((always_inline)) void arrive(struct thrum_unit *self,
                                                         const struct annotate_left *left) {
    if (annotate_on)
        annotate_come_back(left);
    annotate_happens_after(self);
    struct exception_globals *exceptions = worker_here()->exceptions;
    exceptions->caught = self->exceptions.caught;
    exceptions->uncaught = self->exceptions.uncaught;
}

__attribute__((noinline)) void switch_slow(struct worker *worker, struct thrum_unit *self,
                                           struct thrum_unit *next) {
    struct annotate_left left;
    depart(worker, self, next, &left);
    arch_switch(&self->sp, next);
    arrive(self, &left);
}

__attribute__((noinline)) void call_slow(struct worker *worker, struct thrum_unit *self,
                                         struct thrum_unit *child, struct thrum_unit *parent) {
    struct annotate_left left;
    annotate_happens_before(child);
    if (annotate_on)
        annotate_make(&worker->annotate);
    depart(worker, self, child, &left);
    arch_call(&self->sp, child->stack_top, child, parent);
    arrive(self, &left);
}

struct thrum_unit *unit_external(void) {
    static __thread struct thrum_unit external = {.kind = UNIT_EXTERNAL};
    store_relaxed(&external.wake, 0);
    return &external;
}

void unit_block_external(struct thrum_unit *self) {
    while (load_acquire(&self->wake) == 0)
        futex_wait(&self->wake, 0);
    annotate_happens_after(self);
}

bool unit_block_external_until(struct thrum_unit *self, uint64_t deadline) {
    struct timespec time = timer_spec(deadline);
    while (load_acquire(&self->wake) == 0)
        if (futex_wait_until(&self->wake, 0, CLOCK_MONOTONIC, &time) == -ETIMEDOUT)
            return load_acquire(&self->wake) != 0;
    annotate_happens_after(self);
    return true;
}

void unit_wake_elsewhere(struct thrum_unit *unit) {
    if (unit->kind == UNIT_EXTERNAL) {
        /* From the store on it may be gone, the word with it: a futex on memory that is no longer there is an error
         * that nobody sees, and one on memory that is something else now wakes somebody who looks again. */
        store_release(&unit->wake, 1);
        futex_wake(&unit->wake, 1);
    } else if (unit->kind == UNIT_BOUND) {
        struct worker *worker = unit->bound;
        fifo_push(&worker->inbox, unit);
        idle_wake_this(&scheduler.idle, &worker->parking);
    } else if (unit->kind != UNIT_ULT && unit->pool != NULL) {
        pool_push(unit->pool, unit);
    } else {
        fifo_push(&scheduler.shared, unit);
        idle_wake_check(&scheduler.idle);
    }
}

/* --- the loop ----------------------------------------------------------------------------------------- */

/* Is there something that any worker would run? */
static bool work_for_anybody(void) {
    if (!fifo_is_empty(&scheduler.shared))
        return true;
    for (uint32_t i = 0; i < scheduler.count; i++) {
        const struct worker *worker = scheduler.workers[i];
        if (!deque_is_empty(&worker->deque) || !yield_ring_is_empty(&worker->yields))
            return true;
    }
    return false;
}

/* For whoever is about to park: is there something that it would run? */
static bool work_somewhere(void) {
    const struct worker *self = worker_here();
    if (load_acquire(&scheduler.stopping) || !fifo_is_empty(&self->inbox))
        return true;
    if (self->idle_sched != NULL &&
        (scheduler_has_work(self->idle_sched) || load_acquire(&self->idle_sched->stopping)))
        return true;
    return load_acquire(&self->wanted_sched) != self->sched || work_for_anybody();
}

/* Whoever called worker_search has something else to do. */
static bool is_called_away(struct worker *worker, const struct thrum_sched *sched) {
    return load_relaxed(&scheduler.stopping) || load_acquire(&worker->wanted_sched) != worker->sched ||
           (sched != NULL && (scheduler_has_work(sched) || load_acquire(&sched->stopping)));
}

/* The caller's CPU may be taken while it searches: it has nothing that others wait for. */
struct thrum_unit *worker_search(struct worker *worker, struct thrum_sched *sched) {
    bool spin = idle_search(&scheduler.idle);
    store_release(&worker->idle_sched, sched);
    for (uint64_t since = arch_ticks();;) {
        enter();
        struct thrum_unit *unit = look_around(worker);
        leave();
        if (unit != NULL || is_called_away(worker, sched)) {
            store_relaxed(&worker->idle_sched, NULL);
            timekeeper_leave(worker);
            idle_found(&scheduler.idle, work_for_anybody);
            return unit;
        }
        for (int i = 0; i < RELAX; i++)
            arch_relax();
        if (spin && arch_ticks() - since < SEARCH_US * ticks_per_us())
            continue;
        worker->counters.parks++;
        idle_park(&scheduler.idle, &worker->parking, work_somewhere, timekeeper_until);
        timekeeper_wakes(worker);
        since = arch_ticks();
    }
}

/* On the loop: what another unit left for it because it needs a stack to stand on. */
static void run_left_tasklet(struct worker *worker) {
    while (worker->tasklet != NULL) {
        struct thrum_unit *tasklet = worker->tasklet;
        worker->tasklet = NULL;
        tasklet_run(worker, tasklet);
    }
}

/* Goes back to the loop `self`, which the caller is, when the unit waits, yields or ends. Inside. */
void worker_run(struct worker *worker, struct thrum_unit *unit) {
    struct thrum_unit *self = worker->current, *outer = worker->loop;
    run_left_tasklet(worker); /* the loop may be new, and have been gone to for that */
    worker->loop = self;
    switch_to(worker, self, unit);
    worker = worker_here();
    worker->loop = outer;
    run_left_tasklet(worker);
}

static void loop_by_default(struct worker *worker) {
    while (!is_called_away(worker, NULL)) {
        struct thrum_unit *unit = worker_search(worker, NULL);
        enter();
        if (unit != NULL)
            worker_run(worker, unit);
        leave();
    }
}

void worker_loop(struct worker *worker) {
    while (!load_relaxed(&scheduler.stopping)) {
        if (load_acquire(&worker->wanted_sched) != NULL)
            scheduler_run(worker);
        else
            loop_by_default(worker);
    }
}

int worker_init(struct worker *worker, uint32_t id) {
    worker->id = id;
    worker->random = UINT64_C(0x9e3779b97f4a7c15) * (id + 1);
    worker->until_slow = FAIR_EVERY;
    worker->base.kind = UNIT_LOOP;
    worker->current = worker->loop = &worker->base;
    worker->exceptions = annotate_on ? &worker->no_exceptions : NULL;
    timers_init(&worker->timers);
    return deque_init(&worker->deque, scheduler.fenced);
}

void worker_destroy(struct worker *worker) {
    for (unsigned i = 0; i < STACK_CLASSES; i++)
        depot_flush(&stack_depots[i], &worker->stacks[i]);
    depot_flush(&unit_depot, &worker->units);
    deque_destroy(&worker->deque);
}
