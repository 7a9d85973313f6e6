// SPDX-License-Identifier: Apache-2.0
/* The end of a unit; and unit_main, which runs its function, since a unit begins where another has ended: on its stack.
 *
 * The stack is freed while the worker still stands on it. That is safe because only this worker takes from its
 * magazine, and nothing does until the next unit runs; and a new unit of the same class takes over exactly this stack
 * (run's loop). */
#include <stdlib.h>

#include "base/misuse.h"
#include "sched/keys.h"
#include "sched/life.h"
#include "sched/pool/order.h"
#include "sched/suspend.h"
#include "sched/upward.h"
#include "sched/worker.h"

/* --- becoming known ----------------------------------------------------------------------------------- */

/* From here the descriptor belongs to the joiner. A detached unit stays so: no other thread changes that word any
 * more. */
void unit_publish_end(struct worker *worker, struct thrum_unit *self) {
    /* This and the next pair with the joiner's cas, and with each load that finds JOIN_ENDED. */
    struct thrum_unit *joiner = load_acquire(&self->join);
    if (joiner != JOIN_DETACHED)
        joiner = exchange_acq_rel(&self->join, JOIN_ENDED);
    if (joiner == JOIN_DETACHED) {
        if (MISUSE_IS_WATCHED)
            store_relaxed(&self->join, JOIN_DETACHED); /* a thread that joins it nevertheless gets an error */
        unit_free(worker, self);
    } else if (__builtin_expect(join_watch_of(joiner) != NULL, 0))
        join_watch_of(joiner)->ended(worker, join_watch_of(joiner));
    else if (joiner != JOIN_NONE)
        unit_wake(worker, join_unit(joiner));
}

/* Is `next`, just taken from our own queue, the parent that was enqueued for `self`, and has it not run since? Then
 * no other thread has our handle yet, and none can read `join`. `called_child` alone does not say so: it may be left
 * from an earlier child with the same descriptor. */
static bool is_unseen_by_others(const struct thrum_unit *self, const struct thrum_unit *next,
                                const struct thrum_unit *creator) {
    return next != NULL && next == creator && next->called_child == self && !self->escaped;
}

/* True if it waits for the end without a deadline, and may run on this worker next: no other thread takes it from `join`, or
 * reads that. */
static inline __attribute__((always_inline)) ANNOTATE_BETWEEN bool
may_be_returned_to(const struct worker *worker, const struct thrum_unit *joiner) {
    return join_is_untimed(joiner) &&
           (load_relaxed(&joiner->kind) == UNIT_ULT ||
            (load_acquire(&joiner->kind) == UNIT_BOUND && unit_is_at_home(worker, joiner)));
}

/* As may_follow in suspend.c, after a unit that may have had a block for life. */
static inline bool may_follow_last(const struct worker *worker, const struct thrum_unit *joiner) {
    return __builtin_expect(!worker->owes, 1) || joiner->tcb != NULL;
}

/* Publishes the end and returns the unit to run next; NULL for the loop. That is `successor`, unless NULL; but a
 * joiner that can run here precedes it. */
INSIDE static inline __attribute__((always_inline)) struct thrum_unit *
end_and_pick(struct worker *worker, struct thrum_unit *self, const struct thrum_unit *creator,
             struct thrum_unit *successor) {
    struct thrum_unit *joiner = load_acquire(&self->join); /* pairs with the joiner's cas */
    if (may_be_returned_to(worker, joiner) && may_follow_last(worker, joiner)) {
        if (successor != NULL)
            unit_wake(worker, successor);
        store_relaxed(&self->join, JOIN_ENDED); /* the joiner alone looks at it, and it is next */
        return joiner;
    }
    struct thrum_unit *next = successor != NULL ? successor : pick(worker);
    if (joiner == JOIN_NONE && is_unseen_by_others(self, next, creator)) {
        store_relaxed(&self->join, JOIN_ENDED);
    } else {
        store_relaxed(&worker->current, worker->loop); /* not `self`, which may be unmapped (order.c) */
        unit_publish_end(worker, self);
        if (next != NULL && __builtin_expect(worker->in_order, 0))
            order_look_back(worker, next); /* the joiner may be to go before it */
    }
    return next;
}

/* Gives the stack of one that has ended to the next, if that is new and of the same class, or back. */
INSIDE static inline __attribute__((always_inline)) struct thrum_unit *
hand_on_stack(struct worker *worker, struct thrum_unit *next, char *top, unsigned stack_class,
              bool *taken_over) {
    *taken_over = next != NULL && load_relaxed(&next->sp) == UNIT_NEW && next->stack_top == NULL &&
                  next->stack_class == stack_class && !next->measured;
    if (*taken_over) {
        next->stack_top = top;
        return next;
    }
    if (next != NULL && !unit_ready(worker, next)) /* before ours is there to be taken */
        next = NULL;
    depot_put(&stack_depots[stack_class], &worker->stacks[stack_class], top);
    return next != NULL ? next : worker->loop;
}

/* The stack of a unit that has ended can be used for tasklets. */
INSIDE static inline __attribute__((always_inline)) struct thrum_unit *run_tasklets(struct worker *worker,
                                                                                    struct thrum_unit *next) {
    while (next != NULL && __builtin_expect(load_relaxed(&next->kind) == UNIT_TASKLET, 0)) {
        tasklet_run(worker, next);
        next = pick(worker);
    }
    return next;
}

INSIDE static ANNOTATE_BETWEEN __attribute__((noinline)) void
tell_begin(struct worker *worker, struct thrum_unit *self, bool fresh) {
    annotate_begin(&worker->annotate, unit_stack(worker, self), fresh);
    annotate_happens_after(self);
    if (load_relaxed(&self->kind) == UNIT_LOOP)
        annotate_is_loop(&worker->annotate);
    trace_run(worker, self, THRUM_TRACE_BEGIN);
}

INSIDE static ANNOTATE_BETWEEN __attribute__((noinline)) void tell_end(struct worker *worker,
                                                                       struct thrum_unit *self) {
    trace_run(worker, self, THRUM_TRACE_END);
    annotate_happens_before(self);
    annotate_end(&worker->annotate, unit_stack(worker, self));
}

/* `self` has ended, its result is in `arg`, and the worker still stands on its stack. `creator`, unless NULL, was
 * enqueued for it; `successor`, unless NULL, follows it (end_and_pick). Returns the unit that the worker resumes;
 * *again: on this very stack. The user's own memory may be gone as soon as the end is known: it is left first, for
 * the loop. */
INSIDE static inline __attribute__((always_inline)) ANNOTATE_BETWEEN struct thrum_unit *
finish(struct worker *worker, struct thrum_unit *self, const struct thrum_unit *creator,
       struct thrum_unit *successor, bool *again) {
    if (__builtin_expect(watch_on, 0))
        tell_end(worker, self);
    struct thrum_unit *next = worker->loop;
    *again = false;
    if (__builtin_expect(self->stack_class == STACK_CLASS_USER, 0)) {
        if (successor != NULL)
            unit_wake(worker, successor);
        worker->ended = self;
    } else {
        char *top = self->stack_top;
        unsigned stack_class = self->stack_class;
        next = run_tasklets(worker, end_and_pick(worker, self, creator, successor));
        annotate_happens_after(
            &self->join); /* end_and_pick's load: it is not instrumented here (ANNOTATE_BETWEEN) */
        next = hand_on_stack(worker, next, top, stack_class, again);
    }
    worker->current = next;
    return next;
}

/* Runs `self`, and the new units after it that can have its stack. Called on the stack of the first by arch_call or
 * arch_begin; returns the unit to resume. */
INSIDE struct thrum_unit *unit_main(struct thrum_unit *self, struct thrum_unit *parent) __attribute__((used));
/* The same after an end within (exit.c), of which nothing is left on the stack: called there by arch_end. */
ENTERS struct thrum_unit *unit_ended(struct thrum_unit *self) __attribute__((used));

/* `self` may be the only thread of a fork's child, which has no runtime, or began one: then its end is that of the
 * process (pthread_exit(3)). */
ENTERS static inline __attribute__((always_inline)) struct worker *
enter_at_end(const struct thrum_unit *self) {
    struct worker *worker = enter();
    if (__builtin_expect(worker == NULL || worker->current != self, 0)) {
        leave();
        exit(EXIT_SUCCESS);
    }
    if (__builtin_expect(is_in_region(), 0))
        unit_ends_in_region();
    return worker;
}

/* Its function has returned, and it still runs. NULL, or its block, which is as new. */
static __attribute__((noinline)) struct own_block *end_extras(struct thrum_unit *self) {
    if (self->values != NULL)
        keys_destroy(self);
    struct own_block *as_new = self->tcb != NULL ? own_renew(self) : NULL;
    if (load_relaxed(&self->kind) == UNIT_SOLO)
        solo_end(self); /* last: all of the thread's destructors run on its kernel thread */
    return as_new;
}

/* A scope that its owner has returned from has members that use what is no longer there. */
static void expect_no_cleanups(const struct thrum_unit *self) {
    if (self->has_cleanups && self->cleanups != NULL)
        misuse_end("a thread returned between thrum_scope_begin and thrum_scope_end, or between "
                   "thrum_cleanup_push and thrum_cleanup_pop");
}

INSIDE static __attribute__((noinline)) ANNOTATE_BETWEEN struct thrum_unit *
run(struct thrum_unit *self, struct thrum_unit *parent, bool fresh);

/* `self` has ended, and `next`, or nothing, was picked to follow it. */
INSIDE static __attribute__((noinline)) ANNOTATE_BETWEEN struct thrum_unit *
end_before(struct worker *worker, struct thrum_unit *self, const struct thrum_unit *creator,
           struct thrum_unit *next) {
    bool again;
    next = finish(worker, self, creator, next, &again);
    return again ? run(next, NULL, false) : next;
}

/* Is there a creator that may be next, and that is found without looking further? */
INSIDE static inline bool may_end_on_block(const struct worker *worker, const struct thrum_unit *self,
                                           const struct thrum_unit *creator) {
    return creator != NULL && worker->until_slow > 1 && !watch_on && self->stack_class != STACK_CLASS_USER;
}

/* `self` had a block, which is as new and still installed (own_stay). As unit_main ends a plain one: a creator that is next, has
 * not run since, and has a block of its own, is in call_own() or call_slow(), and installs that. It was called there without
 * watch_on, which does not go off while there are workers (trace_forget): so it takes nothing from the worker's own block. */
INSIDE static ANNOTATE_BETWEEN struct thrum_unit *end_on_block(struct worker *worker, struct thrum_unit *self,
                                                               const struct thrum_unit *creator) {
    struct thrum_unit *next = pick(worker);
    /* Pairs with the joiner's cas. */
    if (load_acquire(&self->join) != JOIN_NONE || !is_unseen_by_others(self, next, creator) ||
        next->tcb == NULL) {
        install_workers_tcb(worker);
        return end_before(worker, self, creator, next);
    }
    store_relaxed(&self->join, JOIN_ENDED);
    unsigned stack_class = self->stack_class;
    char *top = self->stack_top;
    depot_put(&stack_depots[stack_class], &worker->stacks[stack_class], top);
    worker->current = next;
    return next;
}

/* `self` has returned `result`: ends it, and runs those new ones after it that can have its stack. */
ENTERS static __attribute__((noinline)) ANNOTATE_BETWEEN struct thrum_unit *
run_on(struct thrum_unit *self, void *result, const struct thrum_unit *creator) {
    for (;;) {
        struct own_block *as_new = NULL;
        if (__builtin_expect(load_relaxed(&self->extras), 0)) {
            if (MISUSE_IS_WATCHED)
                expect_no_cleanups(self);
            as_new = end_extras(self);
        }
        struct worker *worker = enter_at_end(self);
        self->arg = result;
        if (self->tcb != NULL) {
            if (may_end_on_block(worker, self, creator) && own_stay(worker, self, as_new))
                return end_on_block(worker, self, creator);
            own_leave(worker, self, as_new);
        }
        bool again;
        struct thrum_unit *next = finish(worker, self, creator, NULL, &again);
        if (!again) {
            if (__builtin_expect(watch_on, 0))
                annotate_leave_for_good(unit_stack(worker, next));
            return next;
        }
        self = next;
        creator = NULL;
        if (__builtin_expect(watch_on, 0))
            tell_begin(worker, self, false);
        store_relaxed(&self->sp, UNIT_ON_CPU);
        arch_float_control_set(self->float_control);
        leave();
        result = self->fn(self->arg);
    }
}

/* `fresh`: a switch came to this stack; else another unit has just ended on it. */
INSIDE static __attribute__((noinline)) ANNOTATE_BETWEEN struct thrum_unit *
run(struct thrum_unit *self, struct thrum_unit *parent, bool fresh) {
    struct worker *worker = worker_here();
    if (__builtin_expect(watch_on, 0))
        tell_begin(worker, self, fresh);
    if (parent != NULL) {
        parent->called_child = self;
        run_queue_push(worker, parent);
    }
    store_relaxed(&self->sp, UNIT_ON_CPU);
    if (parent == NULL)
        arch_float_control_set(self->float_control); /* its creator's: we were not called by that */
    leave();
    void *result = self->fn(self->arg);
    return run_on(self, result, parent);
}

/* run() for the usual cases, which must be short: no tool is told, and the child, which is plain at its end, returns to its parent,
 * which waits in the run queue still, or to the joiner that has called it (join_by_running). Everything else continues in run(),
 * run_on() or end_before(). */
ANNOTATE_BETWEEN struct thrum_unit *unit_main(struct thrum_unit *self, struct thrum_unit *parent) {
    if (__builtin_expect(watch_on, 0))
        return run(self, parent, true);
    if (__builtin_expect(parent != NULL, 1)) {
        parent->called_child = self;
        run_queue_push(worker_here(), parent);
    } else {
        arch_float_control_set(self->float_control); /* its creator's */
    }
    store_relaxed(&self->sp, UNIT_ON_CPU);
    leave();
    void *result = self->fn(self->arg);
    if (__builtin_expect(!unit_is_plain(self), 0))
        return run_on(self, result, parent);
    struct worker *worker = enter_at_end(self);
    self->arg = result;
    struct thrum_unit *joiner = load_acquire(&self->join), *next = NULL; /* pairs with the joiner's cas */
    if (__builtin_expect(joiner == JOIN_NONE && parent != NULL,
                         1)) { /* run at once: not on a stack of the user's own */
        next = pick(worker);
        if (__builtin_expect(next == NULL || next != parent || next->called_child != self, 0))
            return end_before(worker, self, parent, next);
    } else if (may_be_returned_to(worker, joiner) && self->stack_class != STACK_CLASS_USER &&
               (intptr_t)load_relaxed(&joiner->sp) > 0) {
        next = joiner;
    } else {
        return end_before(worker, self, parent, NULL);
    }
    store_relaxed(&self->join, JOIN_ENDED); /* is_unseen_by_others, or the joiner alone looks at it */
    unsigned stack_class = self->stack_class;
    char *top = self->stack_top;
    depot_put(&stack_depots[stack_class], &worker->stacks[stack_class], top);
    worker->current = next;
    return next;
}

ANNOTATE_BETWEEN struct thrum_unit *unit_ended(struct thrum_unit *self) {
    struct own_block *as_new = end_extras(self);
    struct worker *worker = enter_at_end(self);
    struct thrum_unit *successor = self->successor;
    bool follows =
        successor != NULL && unit_take_suspended(successor) && unit_follow(worker, self, successor);
    if (self->tcb != NULL)
        own_leave(worker, self, as_new);
    if (worker->exceptions != NULL) /* a handler that threw its thread's end again counts it as in flight */
        *worker->exceptions = (struct exception_globals){NULL, 0};
    bool again;
    struct thrum_unit *next = finish(worker, self, NULL, follows ? successor : NULL, &again);
    if (again)
        return run(next, NULL, false);
    if (__builtin_expect(watch_on, 0))
        annotate_leave_for_good(unit_stack(worker, next));
    return next;
}

/* --- tasklets ----------------------------------------------------------------------------------------- */

INSIDE static __attribute__((noinline)) void tell_tasklet(struct worker *worker, struct thrum_unit *tasklet) {
    annotate_happens_after(tasklet);
    trace_run(worker, tasklet, THRUM_TRACE_TASKLET);
}

INSIDE static __attribute__((noinline)) void tell_tasklet_end(struct worker *worker,
                                                              struct thrum_unit *tasklet) {
    trace_run(worker, tasklet, THRUM_TRACE_TASKLET_END);
    annotate_happens_before(tasklet);
}

void tasklet_call(struct worker *worker, struct thrum_unit *tasklet) {
    struct thrum_unit *host = worker->current;
    worker->current = tasklet;
    if (__builtin_expect(watch_on, 0))
        tell_tasklet(worker, tasklet);
    leave();
    void *result = tasklet->fn(tasklet->arg);
    if (__builtin_expect(load_relaxed(&tasklet->extras), 0) && tasklet->values != NULL)
        keys_destroy(tasklet);
    enter_at_end(tasklet);
    tasklet->arg = result;
    if (__builtin_expect(watch_on, 0))
        tell_tasklet_end(worker, tasklet);
    worker->current = host;
}

void tasklet_run(struct worker *worker, struct thrum_unit *tasklet) {
    tasklet_call(worker, tasklet);
    unit_publish_end(worker, tasklet);
}
