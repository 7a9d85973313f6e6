// SPDX-License-Identifier: Apache-2.0
/* See worker.h. */
#include "sched/worker.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "os/futex.h"
#include "os/membarrier.h"
#include "os/ticks.h"

__thread struct worker *thrum_worker;
__thread uint32_t thrum_nopreempt = NOPREEMPT_NOT_PENDING;

struct scheduler scheduler;

enum { SEARCH_US = 100, RELAX = 32 };

/* Nothing asks for a preemption yet, so none can be pending. */
void preempt_pending(void) {
    thrum_assert(false);
}

/* --- choosing ----------------------------------------------------------------------------------------- */

/* Oldest first, from where LIFO order would let them starve. */
struct thrum_unit *pick_fair(struct worker *worker) {
    struct thrum_unit *unit = fifo_pop(&worker->inbox);
    if (unit == NULL)
        unit = fifo_pop(&scheduler.shared);
    if (unit == NULL)
        unit = yield_ring_pop(&worker->yields);
    return unit;
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

static struct thrum_unit *steal_from(struct worker *victim, bool *more) {
    struct thrum_unit *unit = NULL;
    if (!deque_is_empty(&victim->deque))
        unit = deque_steal(&victim->deque);
    if (unit == NULL && !yield_ring_is_empty(&victim->yields))
        unit = yield_ring_pop(&victim->yields);
    *more = !deque_is_empty(&victim->deque) || !yield_ring_is_empty(&victim->yields);
    return unit;
}

static struct thrum_unit *steal(struct worker *worker, bool *more) {
    uint32_t count = scheduler.count, at = (uint32_t)(next_random(worker) % count);
    for (uint32_t i = 0; i < count; i++, at = at + 1 == count ? 0 : at + 1) {
        struct worker *victim = scheduler.workers[at];
        if (victim == worker)
            continue;
        struct thrum_unit *unit = steal_from(victim, more);
        if (unit != NULL) {
            worker->counters.steals++;
            return unit;
        }
    }
    return NULL;
}

static struct thrum_unit *look_around(struct worker *worker, bool *more) {
    struct thrum_unit *unit = pick(worker);
    *more = false;
    if (unit == NULL && (unit = fifo_pop(&scheduler.shared)) != NULL)
        *more = !fifo_is_empty(&scheduler.shared);
    return unit != NULL ? unit : steal(worker, more);
}

/* --- units -------------------------------------------------------------------------------------------- */

bool unit_make_frame(struct worker *worker, struct thrum_unit *unit) {
    if (unit->stack_top == NULL)
        unit->stack_top = depot_get(&stack_depots[unit->stack_class], &worker->stacks[unit->stack_class]);
    if (unit->stack_top == NULL) {
        fifo_push(&scheduler.shared, unit); /* until another has ended and left its stack */
        return false;
    }
    store_relaxed(&unit->sp, arch_frame_make(unit->stack_top, unit));
    return true;
}

__attribute__((noinline)) void switch_with_exceptions(struct worker *worker, struct thrum_unit *self,
                                                      struct thrum_unit *next) {
    self->exceptions.caught = worker->exceptions->caught;
    self->exceptions.uncaught = worker->exceptions->uncaught;
    *worker->exceptions = (struct exception_globals){NULL, 0};
    arch_switch(&self->sp, next);
    struct exception_globals *exceptions = worker_here()->exceptions;
    exceptions->caught = self->exceptions.caught;
    exceptions->uncaught = self->exceptions.uncaught;
}

struct thrum_unit *unit_external(void) {
    static __thread struct thrum_unit external = {.kind = UNIT_EXTERNAL};
    store_relaxed(&external.wake, 0);
    return &external;
}

void unit_block_external(struct thrum_unit *self) {
    while (load_acquire(&self->wake) == 0)
        futex_wait(&self->wake, 0);
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
    } else {
        fifo_push(&scheduler.shared, unit);
        idle_wake_check(&scheduler.idle);
    }
}

/* --- the loop ----------------------------------------------------------------------------------------- */

static bool work_somewhere(void) {
    if (!fifo_is_empty(&scheduler.shared) || load_acquire(&scheduler.stopping))
        return true;
    if (!fifo_is_empty(&worker_here()->inbox))
        return true;
    for (uint32_t i = 0; i < scheduler.count; i++) {
        const struct worker *worker = scheduler.workers[i];
        if (!deque_is_empty(&worker->deque) || !yield_ring_is_empty(&worker->yields))
            return true;
    }
    return false;
}

/* A unit to run; NULL when the scheduler stops. The caller is outside: its CPU may be taken while it searches, and it
 * has nothing that others wait for. */
static struct thrum_unit *search(struct worker *worker) {
    bool spin = idle_search(&scheduler.idle), more;
    for (uint64_t since = arch_ticks();;) {
        enter();
        struct thrum_unit *unit = look_around(worker, &more);
        leave();
        if (unit != NULL || load_relaxed(&scheduler.stopping)) {
            idle_found(&scheduler.idle, more);
            return unit;
        }
        for (int i = 0; i < RELAX; i++)
            arch_relax();
        if (spin && arch_ticks() - since < SEARCH_US * ticks_per_us())
            continue;
        worker->counters.parks++;
        idle_park(&scheduler.idle, &worker->parking, work_somewhere, UINT64_MAX);
        since = arch_ticks();
    }
}

void worker_loop(struct worker *worker) {
    for (;;) {
        struct thrum_unit *unit = search(worker);
        if (unit == NULL)
            return;
        enter();
        unit_announce(&worker->loop);
        switch_to(worker, &worker->loop, unit);
        leave();
    }
}

int worker_init(struct worker *worker, uint32_t id) {
    worker->id = id;
    worker->random = UINT64_C(0x9e3779b97f4a7c15) * (id + 1);
    worker->loop.kind = UNIT_LOOP;
    worker->current = &worker->loop;
    return deque_init(&worker->deque, scheduler.fenced);
}

void worker_destroy(struct worker *worker) {
    for (unsigned i = 0; i < STACK_CLASSES; i++)
        depot_flush(&stack_depots[i], &worker->stacks[i]);
    depot_flush(&unit_depot, &worker->units);
    deque_destroy(&worker->deque);
}
