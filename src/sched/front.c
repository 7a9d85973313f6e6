// SPDX-License-Identifier: Apache-2.0
/* See front.h. */
#include "sched/front.h"

#include <sched.h>

#include "os/membarrier.h"
#include "sched/attributes.h"
#include "sched/keys.h"
#include "sched/life.h"

struct thrum_unit *front_new(const thrum_attr_t *attr, void *(*fn)(void *), void *arg) {
    struct worker *worker = enter();
    struct thrum_unit *unit = unit_make(worker, attributes_of(attr), fn, arg);
    leave();
    return unit;
}

/* The core's pick() gives nothing meanwhile, so the guest comes back here whenever it waits. */
INSIDE static void run_guest(struct worker *worker, struct thrum_unit *unit) {
    bool had_scheduler = worker->has_scheduler;
    worker->has_scheduler = true;
    worker->until_slow = 1;
    if (__builtin_expect(load_relaxed(&worker->tick.state) == TICK_REST, 0))
        tick_resume(worker);
    worker_run(worker, unit);
    worker_here()->has_scheduler = had_scheduler;
}

void front_run(struct thrum_unit *unit) {
    run_guest(enter(), unit);
    leave();
}

void front_leave(struct worker *worker) {
    struct thrum_unit *self = worker->current;
    unit_announce(self);
    switch_as(worker, self, worker->loop, THRUM_TRACE_YIELD);
}

void front_drop(struct thrum_unit *unit) {
    struct worker *worker = enter();
    /* Pairs with arch_switch's store. */
    while (load_acquire(&unit->sp) ==
           UNIT_ON_CPU) /* it has announced itself, and is about to be off its stack */
        arch_relax();
    if (unit->stack_class == STACK_CLASS_USER) {
        annotate_stack_gone(unit_head_of(unit)->annotation, worker != NULL
                                                                ? unit_stack(worker, worker->current)
                                                                : (struct annotate_stack){NULL, 0});
    } else if (unit->stack_top != NULL) {
        struct depot *depot = &stack_depots[unit->stack_class];
        if (worker != NULL)
            depot_put(depot, &worker->stacks[unit->stack_class], unit->stack_top);
        else
            depot_put_shared(depot, unit->stack_top);
    }
    unit_free(worker, unit);
    leave();
}

uint32_t front_look(void) {
    struct worker *worker = enter();
    uint32_t turns = timers_look(worker);
    struct thrum_unit *unit = pick_queued(worker);
    if (unit != NULL)
        run_guest(worker, unit);
    leave();
    return turns;
}

void front_fence_all(void) {
    membarrier_expedited();
}

void front_breathe(void) {
    struct worker *worker = enter();
    if (worker != NULL)
        timers_look_everywhere(worker);
    leave();
    sched_yield();
}

void front_set_primary(struct thrum_pool *pool, const void *thread) {
    front_shape.primary = thread;
    store_release(&runtime.primary.pool, pool); /* pairs with unit_wake_elsewhere */
}
