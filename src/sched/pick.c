// SPDX-License-Identifier: Apache-2.0
/* See worker.h, choosing: what a worker runs next, from its own queues and from others'. */
#include "sched/worker.h"

#include "sched/preempted.h"
#include "sched/time/timer.h"
#include "sched/trim.h"

enum { QUEUED_AFTER_THEFT = 64 };

/* Oldest first, from the sources that are due; each of the four queues is first in turn. The oldest of the deque waits
 * for thieves, which may be busy or absent. */
INSIDE static struct thrum_unit *pick_starving(struct worker *worker, const bool due[FAIR_SOURCES],
                                               enum fair_source *source) {
    struct thrum_unit *unit = NULL;
    worker->turn++;
    for (unsigned i = 0; i < 4 && unit == NULL; i++) {
        unsigned queue = (worker->turn + i) % 4;
        *source = queue == 2 ? FAIR_DEQUE : FAIR_OTHERS;
        if (!due[*source])
            continue;
        switch (queue) {
        case 0: unit = fifo_pop(&worker->inbox); break;
        case 1: unit = fifo_pop(&runtime.shared); break;
        case 2: unit = deque_pop_oldest(&worker->deque); break;
        default: unit = yield_ring_pop(&worker->yields); break;
        }
    }
    return unit;
}

/* Without what the deque has, all is in turn. */
static uint32_t others_behind_deque(const struct worker *worker) {
    return deque_is_empty(&worker->deque) ? 0 : (uint32_t)worker_count_queued(worker);
}

/* A tasklet runs to its end. */
static bool ticks_end(const struct thrum_unit *unit) {
    return ticks_are_possible && unit->preempt != THRUM_PREEMPT_NONE &&
           load_relaxed(&unit->kind) != UNIT_TASKLET;
}

/* The pick that follows is slow, too: it settles how long this one has run. */
INSIDE static struct thrum_unit *pick_out_of_turn(struct worker *worker) {
    static const bool only_others[FAIR_SOURCES] = {[FAIR_OTHERS] = true};
    struct fair *fair = &worker->fair;
    uint64_t now = arch_ticks();
    enum fair_source source;
    if (fair_shares(fair, now)) {
        struct thrum_unit *next = pick_starving(worker, only_others, &source);
        if (next != NULL) {
            fair->more--;
            fair->is_bounded &= ticks_end(next);
            worker->until_slow = 1;
            return next;
        }
    }
    fair_settle(fair, now);
    bool due[FAIR_SOURCES] = {now >= fair->due[FAIR_DEQUE], now >= fair->due[FAIR_OTHERS]};
    if (!due[FAIR_DEQUE] && !due[FAIR_OTHERS])
        return NULL;
    struct thrum_unit *unit = pick_starving(worker, due, &source);
    if (unit != NULL) {
        fair_begin(fair, source, source == FAIR_OTHERS ? others_behind_deque(worker) : 0, ticks_end(unit),
                   now);
        worker->until_slow = 1;
    }
    return unit;
}

struct thrum_unit *pick_queued(struct worker *worker) {
    static const bool due[FAIR_SOURCES] = {true, true};
    enum fair_source source;
    return pick_starving(worker, due, &source);
}

/* One that has taken a block along gives back another as it is resumed (preempt/lend.c). */
INSIDE static struct thrum_unit *pick_preempted(struct worker *worker) {
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
    struct thrum_unit *unit = pick_out_of_turn(worker);
    return unit != NULL ? unit : pick_own(worker);
}

struct thrum_unit *pick_preferred(struct worker *worker) {
    fair_settle(&worker->fair, arch_ticks());
    return pick_own(worker);
}

INSIDE static struct thrum_unit *steal_from(struct worker *victim) {
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
INSIDE static struct thrum_unit *steal_where(struct worker *worker, bool near) {
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

INSIDE static struct thrum_unit *steal(struct worker *worker) {
    struct thrum_unit *unit = steal_where(worker, true);
    return unit != NULL || runtime.nodes <= 1 ? unit : steal_where(worker, false);
}

struct thrum_unit *pick_anywhere(struct worker *worker) {
    trim_look(worker);
    timers_look_everywhere(worker);
    struct thrum_unit *unit =
        worker->has_scheduler ? pick_queued(worker) : pick(worker); /* a scheduler that has nothing */
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
    struct thrum_unit *unit = pick_out_of_turn(worker);
    if (unit == NULL)
        unit = pick_own(worker);
    if (unit == NULL)
        unit = fifo_pop(&runtime.shared);
    return unit != NULL ? unit : steal(worker);
}
