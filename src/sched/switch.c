// SPDX-License-Identifier: Apache-2.0
/* See worker.h, switching: from one unit to another. */
#include "sched/worker.h"

#include "base/assert.h"
#include "sched/carrier.h"
#include "sched/life.h"

/* A unit that is just leaving is waited for there (context.S). The exception is the primary on carriers, which then
 * keeps its kernel thread: it may be leaving the worker that relieved its own (preempt/relief.c). */
static void *sp_of(const struct thrum_unit *unit) {
    void *sp = load_relaxed(&unit->sp);
    /* Pairs with arch_switch's store. */
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
INSIDE static inline __attribute__((always_inline)) void
depart(struct worker *worker, struct thrum_unit *self, const struct thrum_unit *next,
       struct annotate_left *left, enum thrum_trace_kind why) {
    trace_run(worker, self, why);
    self->exceptions.caught = worker->exceptions->caught;
    self->exceptions.uncaught = worker->exceptions->uncaught;
    *worker->exceptions = (struct exception_globals){NULL, 0};
    if (annotate_on)
        annotate_leave(left, &worker->annotate, unit_stack(worker, next));
}

INSIDE static inline __attribute__((always_inline)) void arrive(struct thrum_unit *self,
                                                                const struct annotate_left *left) {
    if (annotate_on)
        annotate_resume(left);
    annotate_happens_after(self);
    trace_run(worker_here(), self, THRUM_TRACE_RESUME);
    struct exception_globals *exceptions = worker_here()->exceptions;
    thrum_assert(exceptions != &tcb_unit_has_one); /* the worker's own block is installed (end_on_block) */
    exceptions->caught = self->exceptions.caught;
    exceptions->uncaught = self->exceptions.uncaught;
}

INSIDE static void leave_block(struct worker *worker, const struct thrum_unit *self) {
    if (self->is_primary)
        primary_leaves(worker);
    install_workers_tcb(worker);
}

INSIDE static void resume_with_block(struct worker *worker, const struct thrum_unit *self) {
    install_units_tcb(worker, self);
    if (self->is_primary)
        primary_comes(worker);
}

__attribute__((noinline)) void switch_slow(struct worker *worker, struct thrum_unit *self,
                                           struct thrum_unit *next, enum thrum_trace_kind why) {
    struct annotate_left left;
    bool has_block = self->tcb != NULL;
    if (has_block && carriers_are_used) {
        carrier_keep(worker, self, next, NULL, why);
        return;
    }
    if (has_block)
        leave_block(worker, self);
    depart(worker, self, next, &left, why);
    arch_switch(&self->sp, next);
    arrive(self, &left);
    if (has_block)
        resume_with_block(worker_here(), self);
}

__attribute__((noinline)) void call_slow(struct worker *worker, struct thrum_unit *self,
                                         struct thrum_unit *child, struct thrum_unit *parent) {
    struct annotate_left left;
    bool has_block = self->tcb != NULL;
    if (has_block && carriers_are_used) {
        thrum_assert(parent == NULL); /* it is the primary, which is bound */
        carrier_keep(worker, self, child, NULL, THRUM_TRACE_WAIT);
        return;
    }
    if (has_block && !watch_on) { /* its exceptions stay in its block, and there are none in its worker's */
        leave_block(worker, self);
        arch_call(child, parent, &self->sp, unit_first_frame(child));
        resume_with_block(worker_here(), self);
        return;
    }
    if (has_block)
        leave_block(worker, self);
    annotate_happens_before(child);
    if (annotate_on)
        annotate_make(&worker->annotate);
    depart(worker, self, child, &left, parent != NULL ? THRUM_TRACE_CHILD : THRUM_TRACE_WAIT);
    arch_call(child, parent, &self->sp, unit_first_frame(child));
    arrive(self, &left);
    if (has_block)
        resume_with_block(worker_here(), self);
}

/* From block to block, where nothing else is to be changed: the worker's own is left out. */
void call_own(struct worker *worker, struct thrum_unit *self, struct thrum_unit *child) {
    const bool has_block = self->tcb != NULL;
    worker->current = child;
    if (__builtin_expect(watch_on || (!has_block && switch_is_slow(worker)), 0)) {
        run_child(worker, self, child, self);
        return;
    }
    thrum_assert(regions_open() == 1);
    own_begin(worker, child);
    arch_call(child, self, &self->sp, unit_first_frame(child));
    if (has_block)
        resume_with_block(worker_here(), self);
}
