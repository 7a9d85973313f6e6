// SPDX-License-Identifier: Apache-2.0
/* See worker.h, choosing: what a worker runs next, from its own queues and from others'. */
#include "sched/worker.h"

#include "os/ticks.h"
#include "sched/preempted.h"
#include "sched/timer.h"
#include "sched/trim.h"

enum { FAIR_US = 100, QUEUED_AFTER_THEFT = 64 };

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
    if (__builtin_expect(worker_is_called_away(worker), 0))
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

struct thrum_unit *pick_anywhere(struct worker *worker) {
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
    if (worker_is_called_away(worker))
        worker->has_scheduler = true;
    if (worker->has_scheduler)
        return NULL;
    struct thrum_unit *unit = pick_starving(worker);
    return unit != NULL ? unit : steal(worker);
}
