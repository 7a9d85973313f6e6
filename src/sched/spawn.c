// SPDX-License-Identifier: Apache-2.0
/* The life of a unit.
 *
 *   1. thrum_spawn takes a descriptor and a stack. The child runs at once, on a call: its parent is enqueued in the run
 *      queue, where a thief may take it (work first: what is in flight stays as little as on a stack). If the parent may
 *      not leave its worker, or the caller asks for it, or the parent has just been stolen, the child is enqueued instead.
 *   2. unit_main runs fn(arg) on the child's stack.
 *   3. finish: the end is published in `join`, the stack goes back to the worker, and the worker resumes the parent, if it
 *      is still there, by a plain return; else it runs what pick finds. A thread that ends from within comes here by
 *      unit_ended instead (exit.c).
 *   4. The joiner reads the result and frees the descriptor (join.c).
 *
 * The stack is freed while the worker still stands on it. That is safe because only this worker takes from its
 * magazine, and nothing does until the next unit runs; and a new unit of the same class takes over exactly this stack
 * (run's loop). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/container_of.h"
#include "base/misuse.h"
#include "sched/attributes.h"
#include "sched/cancel.h"
#include "sched/keys.h"
#include "sched/life.h"
#include "sched/pool/order.h"
#include "sched/pool/scheduler.h"
#include "sched/suspend.h"
#include "sched/upward.h"
#include "sched/worker.h"
#include "thrum/thrum.h"

/* --- the end ------------------------------------------------------------------------------------------ */

/* From here the descriptor belongs to the joiner. A detached unit stays so: no other thread changes that word any
 * more. */
void unit_publish_end(struct worker *worker, struct thrum_unit *self) {
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
static inline bool may_be_returned_to(const struct worker *worker, const struct thrum_unit *joiner) {
    return join_is_untimed(joiner) &&
           (load_relaxed(&joiner->kind) == UNIT_ULT ||
            (load_acquire(&joiner->kind) == UNIT_BOUND && joiner->bound == worker));
}

/* Publishes the end and returns the unit to run next; NULL for the loop. That is `successor`, unless NULL; but a
 * joiner that can run here precedes it. */
static inline __attribute__((always_inline)) struct thrum_unit *end_and_pick(struct worker *worker,
                                                                             struct thrum_unit *self,
                                                                             const struct thrum_unit *creator,
                                                                             struct thrum_unit *successor) {
    struct thrum_unit *joiner = load_acquire(&self->join);
    if (may_be_returned_to(worker, joiner)) {
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
static inline __attribute__((always_inline)) struct thrum_unit *hand_on_stack(struct worker *worker,
                                                                              struct thrum_unit *next,
                                                                              char *top, unsigned stack_class,
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
static inline __attribute__((always_inline)) struct thrum_unit *run_tasklets(struct worker *worker,
                                                                             struct thrum_unit *next) {
    while (next != NULL && __builtin_expect(load_relaxed(&next->kind) == UNIT_TASKLET, 0)) {
        tasklet_run(worker, next);
        next = pick(worker);
    }
    return next;
}

static ANNOTATE_BETWEEN __attribute__((noinline)) void tell_begin(struct worker *worker,
                                                                  struct thrum_unit *self, bool fresh) {
    annotate_begin(&worker->annotate, unit_stack(worker, self), fresh);
    annotate_happens_after(self);
    if (load_relaxed(&self->kind) == UNIT_LOOP)
        annotate_is_loop(&worker->annotate);
    trace_run(worker, self, THRUM_TRACE_BEGIN);
}

static ANNOTATE_BETWEEN __attribute__((noinline)) void tell_end(struct worker *worker,
                                                                struct thrum_unit *self) {
    trace_run(worker, self, THRUM_TRACE_END);
    annotate_happens_before(self);
    annotate_end(&worker->annotate, unit_stack(worker, self));
}

/* `self` has ended, its result is in `arg`, and the worker still stands on its stack. `creator`, unless NULL, was
 * enqueued for it; `successor`, unless NULL, follows it (end_and_pick). Returns the unit that the worker resumes;
 * *again: on this very stack. The user's own memory may be gone as soon as the end is known: it is left first, for
 * the loop. */
static inline __attribute__((always_inline)) ANNOTATE_BETWEEN struct thrum_unit *
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
struct thrum_unit *unit_main(struct thrum_unit *self, struct thrum_unit *parent) __attribute__((used));
/* The same after an end within (exit.c), of which nothing is left on the stack: called there by arch_end. */
struct thrum_unit *unit_ended(struct thrum_unit *self) __attribute__((used));

/* `self` may be the only thread of a fork's child, which has no runtime, or began one: then its end is that of the
 * process (pthread_exit(3)). */
static inline __attribute__((always_inline)) struct worker *enter_at_end(const struct thrum_unit *self) {
    struct worker *worker = enter();
    if (__builtin_expect(worker == NULL || worker->current != self, 0)) {
        leave();
        exit(EXIT_SUCCESS);
    }
    if (__builtin_expect(is_in_region(), 0))
        unit_ends_in_region();
    return worker;
}

/* Its function has returned, and it still runs. */
static __attribute__((noinline)) void end_extras(struct thrum_unit *self) {
    if (self->values != NULL)
        keys_destroy(self);
    if (self->tcb != NULL)
        own_end(self);
}

/* `self` has returned `result`: ends it, and runs those new ones after it that can have its stack. */
static __attribute__((noinline)) ANNOTATE_BETWEEN struct thrum_unit *
run_on(struct thrum_unit *self, void *result, const struct thrum_unit *creator) {
    for (;;) {
        if (__builtin_expect(load_relaxed(&self->extras), 0))
            end_extras(self);
        struct worker *worker = enter_at_end(self);
        self->arg = result;
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
static __attribute__((noinline)) ANNOTATE_BETWEEN struct thrum_unit *
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

/* `self` has ended, and `next`, or nothing, was picked to follow it. */
static __attribute__((noinline)) ANNOTATE_BETWEEN struct thrum_unit *
end_before(struct worker *worker, struct thrum_unit *self, const struct thrum_unit *creator,
           struct thrum_unit *next) {
    bool again;
    next = finish(worker, self, creator, next, &again);
    return again ? run(next, NULL, false) : next;
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
    struct thrum_unit *joiner = load_acquire(&self->join), *next = NULL;
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
    end_extras(self);
    struct worker *worker = enter_at_end(self);
    if (worker->exceptions != NULL) /* a handler that threw its thread's end again counts it as in flight */
        *worker->exceptions = (struct exception_globals){NULL, 0};
    struct thrum_unit *successor = self->successor;
    bool follows =
        successor != NULL && unit_take_suspended(successor) && unit_follow(worker, self, successor);
    bool again;
    struct thrum_unit *next = finish(worker, self, NULL, follows ? successor : NULL, &again);
    if (again)
        return run(next, NULL, false);
    if (__builtin_expect(watch_on, 0))
        annotate_leave_for_good(unit_stack(worker, next));
    return next;
}

/* --- the beginning ------------------------------------------------------------------------------------ */

static __attribute__((noinline)) void clear_extras(struct thrum_unit *unit) {
    unit->permit = 0;
    unit->cancel = 0;
    unit->id = 0;
    unit->deadline = 0;
    unit->name[0] = unit->name[1] = 0;
    unit->has_cleanups = false;
    unit->slice = 0;
    unit->clocked = 0;
}

static void unit_set(struct thrum_unit *unit, void *(*fn)(void *), void *arg, struct thrum_unit *join) {
    unit->fn = fn;
    unit->arg = arg;
    store_relaxed(&unit->join, join);
    unit->called_child = NULL;
    if (__builtin_expect(unit->extras, 0))
        clear_extras(unit);
    unit->kind = UNIT_ULT; /* from here eight bytes that are written at once */
    unit->stack_class = STACK_CLASS_DEFAULT;
    unit->escaped = false;
    unit->priority = 0;
    unit->extras = false;
    unit->cancellable = false;
    unit->at_cancel_point = false;
    unit->measured = false;
    unit->cancels_locks = false;
    unit->unused = 0;
    unit->preempt = THRUM_PREEMPT_DEFAULT;
}

/* Without `extras` it is 0. */
static void unit_set_deadline(struct thrum_unit *unit, uint64_t deadline) {
    if (deadline == 0)
        return;
    unit->deadline = deadline;
    unit->extras = true;
}

/* Until it ends (worker.h). */
static void announce_user_stack(struct thrum_unit *unit) {
    struct unit_head *head = unit_head_of(unit);
    struct annotate_stack stack = {head->low, (size_t)(unit->stack_top - head->low)};
    head->annotation = annotate_stack_new(stack);
}

/* False: the runtime does not preempt in this way. */
static bool set_preempt(struct thrum_unit *unit, const struct attributes *attributes) {
    unit->preempt = attributes->preempt;
    unit->slice = attributes->slice;
    unit->extras |= attributes->slice != 0;
    return tick_can_preempt((enum thrum_preempt_mode)attributes->preempt, attributes->slice);
}

/* False: `attributes` contradict themselves, or the present runtime. */
static bool unit_set_attributes(struct thrum_unit *unit, const struct attributes *attributes) {
    unit->stack_class = attributes->stack_class;
    unit->priority = attributes->priority;
    unit_set_deadline(unit, attributes->deadline);
    unit->pool = attributes->pool;
    unit->cancellable = attributes->flags & THRUM_SPAWN_CANCELLABLE;
    unit->measured = attributes->flags & THRUM_SPAWN_MEASURED && attributes->stack_top == NULL;
    unit->cancels_locks = attributes->flags & THRUM_SPAWN_CANCEL_LOCKS;
    if (attributes->stack_top != NULL) {
        unit->stack_top = attributes->stack_top;
        unit_head_of(unit)->low = attributes->stack_low;
        announce_user_stack(unit);
    }
    if (__builtin_expect(attributes->preempt != 0 || attributes->slice != 0, 0) &&
        !set_preempt(unit, attributes))
        return false;
    if (attributes->pool != NULL)
        unit->kind = UNIT_POOLED;
    if (attributes->worker == 0)
        return true;
    return unit->kind == UNIT_ULT && unit_bind(unit, attributes->worker - 1);
}

/* Begun by the worker that takes it from a queue. A tasklet has no floating-point control state of its own: reading
 * the creator's and the host's would take longer than all the rest. */
static inline void prepare(struct thrum_unit *unit) {
    if (unit->stack_class != STACK_CLASS_USER)
        unit->stack_top = NULL;
    if (unit->kind != UNIT_TASKLET)
        unit->float_control = arch_float_control();
    store_relaxed(&unit->sp, UNIT_NEW);
}

struct thrum_unit *unit_make(struct worker *worker, const struct attributes *attributes, void *(*fn)(void *),
                             void *arg) {
    struct thrum_unit *unit = unit_new(worker);
    if (unit == NULL)
        return NULL;
    unit_set(unit, fn, arg, JOIN_DETACHED);
    if (!unit_set_attributes(unit, attributes)) {
        unit_free(worker, unit);
        return NULL;
    }
    unit->escaped = true;
    prepare(unit);
    return unit;
}

static void enqueue(struct worker *worker, struct thrum_unit *unit) {
    prepare(unit);
    unit_wake(worker, unit);
}

/* True if the creator may wait in the run queue meanwhile, which it may not in a region of its own. (An atomic load
 * of `kind` costs a spawn 3 ns with gcc 12: it is not folded into the comparison. A concurrent move of the creator is
 * seen or not, as if it had come a little later.) */
static inline __attribute__((always_inline)) bool may_run_at_once(const struct worker *worker,
                                                                  const struct thrum_unit *self) {
    return self->kind == UNIT_ULT && worker->not_at_once == 0 && !is_in_region();
}

/* Likewise, also of a creator that was stolen: some of its children are queued (note_theft). */
static __attribute__((noinline)) bool may_run_now(struct worker *worker, const thrum_attr_t *attr) {
    if (__builtin_expect(worker->queues != 0, 0)) {
        if (worker->current->kind != UNIT_ULT || worker->has_scheduler || is_in_region())
            return false;
        bool was_stolen = worker->current == worker->stolen;
        worker->queues = was_stolen ? worker->queues - 1 : 0;
        if (was_stolen)
            return false;
    }
    if (!may_run_at_once(worker, worker->current))
        return false;
    if (attr == NULL)
        return true;
    const struct attributes *attributes = attributes_of(attr);
    return (attributes->flags & ~(unsigned)(THRUM_SPAWN_CANCELLABLE | THRUM_SPAWN_CANCEL_LOCKS)) == 0 &&
           attributes->pool == NULL && attributes->worker == 0 && attributes->stack_top == NULL;
}

static inline __attribute__((always_inline)) int spawn_now(struct worker *worker, thrum_t *thread,
                                                           struct thrum_unit *unit) {
    unsigned stack_class = unit->stack_class;
    unit->stack_top = depot_get(&stack_depots[stack_class], &worker->stacks[stack_class]);
    if (unit->stack_top == NULL) {
        unit_free(worker, unit);
        leave();
        return EAGAIN;
    }
    struct thrum_unit *self = worker->current;
    run_child(worker, self, unit, self);
    self->called_child = NULL;
    leave();
    if (thread != NULL)
        *thread = unit;
    return 0;
}

static inline bool is_at_hand(const struct depot_cache *cache) {
    return cache->loaded != NULL && cache->loaded->count > 0;
}

/* A queued unit gets its stack when it begins, mostly that of the unit before it. Can a stack be had at all?
 * Otherwise it might wait for ever. */
static bool has_stack_for(struct worker *worker, const struct thrum_unit *unit) {
    if (unit->stack_class >= STACK_CLASSES)
        return true; /* it needs none */
    struct depot *depot = &stack_depots[unit->stack_class];
    struct depot_cache *cache = worker != NULL ? &worker->stacks[unit->stack_class] : &depot->shared;
    if (worker != NULL && is_at_hand(cache))
        return true;
    char *top = worker != NULL ? depot_get(depot, cache) : depot_get_shared(depot);
    if (top != NULL && worker != NULL)
        depot_put(depot, cache, top);
    else if (top != NULL)
        depot_put_shared(depot, top);
    return top != NULL;
}

/* A unit that is never joined. */
static inline struct thrum_unit *tasklet_new(struct worker *worker, void *(*fn)(void *), void *arg) {
    struct thrum_unit *tasklet = unit_new(worker);
    if (tasklet == NULL)
        return NULL;
    unit_set(tasklet, fn, arg, JOIN_DETACHED);
    tasklet->kind = UNIT_TASKLET;
    tasklet->stack_class = STACK_CLASS_NONE;
    tasklet->pool = NULL;
    prepare(tasklet);
    return tasklet;
}

struct thrum_unit *unit_make_tasklet(struct worker *worker, void *(*fn)(void *)) {
    return tasklet_new(worker, fn, NULL);
}

static __attribute__((noinline)) int spawn_tasklet(struct worker *worker, thrum_t *thread,
                                                   const struct attributes *attributes, void *(*fn)(void *),
                                                   void *arg) {
    struct thrum_unit *tasklet;
    int error = 0;
    if (attributes->worker != 0 || attributes->stack_top != NULL ||
        attributes->flags & (THRUM_SPAWN_CANCELLABLE | THRUM_SPAWN_MEASURED)) {
        error = EINVAL;
    } else if ((tasklet = tasklet_new(worker, fn, arg)) == NULL) {
        error = EAGAIN;
    } else {
        tasklet->priority = attributes->priority;
        unit_set_deadline(tasklet, attributes->deadline);
        tasklet->pool = attributes->pool;
        if (thread != NULL) {
            store_relaxed(&tasklet->join, JOIN_NONE);
            *thread = tasklet;
        }
        unit_wake(worker, tasklet);
    }
    leave();
    return error;
}

/* Inside; leaves. */
static inline __attribute__((always_inline)) int
spawn(struct worker *worker, thrum_t *thread, const thrum_attr_t *attr, void *(*fn)(void *), void *arg) {
    if (__builtin_expect(worker == NULL && !load_acquire(&runtime.open), 0)) {
        leave();
        int error = scheduler_start_default();
        return error != 0 ? error : thrum_spawn(thread, attr, fn, arg);
    }
    if (attr != NULL && attributes_of(attr)->flags & THRUM_SPAWN_TASKLET)
        return spawn_tasklet(worker, thread, attributes_of(attr), fn, arg);
    struct thrum_unit *unit = unit_new(worker);
    if (unit == NULL) {
        leave();
        return EAGAIN;
    }
    unit_set(unit, fn, arg, thread == NULL ? JOIN_DETACHED : JOIN_NONE);
    if (attr != NULL && !unit_set_attributes(unit, attributes_of(attr))) {
        unit_free(worker, unit);
        leave();
        return EINVAL;
    }
    if (__builtin_expect(worker != NULL && may_run_now(worker, attr), 1))
        return spawn_now(worker, thread, unit);
    if (!has_stack_for(worker, unit)) {
        unit_free(worker, unit);
        leave();
        return EAGAIN;
    }
    if (thread != NULL)
        *thread = unit;
    enqueue(worker, unit);
    leave();
    return 0;
}

/* One that has thread-locals of its own. */
static __attribute__((noinline)) int spawn_own(thrum_t *thread, const thrum_attr_t *attr, void *(*fn)(void *),
                                               void *arg) {
    int error = own_make(&fn, &arg);
    if (error != 0)
        return error;
    error = spawn(enter(), thread, attr, fn, arg);
    if (error != 0)
        own_unmake(arg);
    return error;
}

static inline bool is_to_have_own(const struct attributes *attributes) {
    return own_is_wanted((enum thrum_preempt_mode)attributes->preempt) &&
           !(attributes->flags & THRUM_SPAWN_TASKLET);
}

static __attribute__((noinline)) int spawn_any(thrum_t *thread, const thrum_attr_t *attr, void *(*fn)(void *),
                                               void *arg) {
    if (fn == NULL)
        return EINVAL;
    if (__builtin_expect(attr == NULL ? own_is_default : is_to_have_own(attributes_of(attr)), 0))
        return spawn_own(thread, attr, fn, arg);
    return spawn(enter(), thread, attr, fn, arg);
}

/* No attributes. Of a creator that is bound, as main is, the child is queued: the creator
 * is mostly the first to join it, and calls it then (join_by_running). */
static __attribute__((noinline)) int spawn_plain(struct worker *worker, thrum_t *thread, void *(*fn)(void *),
                                                 void *arg) {
    struct thrum_unit *child;
    if (__builtin_expect(worker == NULL || worker->current->kind != UNIT_BOUND || thread == NULL ||
                             watch_on || !is_at_hand(&worker->stacks[STACK_CLASS_DEFAULT]),
                         0) ||
        (child = unit_new(worker)) == NULL)
        return spawn(worker, thread, NULL, fn, arg);
    unit_set(child, fn, arg, JOIN_NONE);
    prepare(child);
    *thread = child;
    run_queue_push(worker, child);
    leave();
    return 0;
}

/* spawn() and spawn_now() for the usual case, which must be short: no attributes, a creator that may wait in the run queue, and a
 * descriptor and a stack that the worker has at hand. Everything else is theirs, before anything has changed. */
int thrum_spawn(thrum_t *thread, const thrum_attr_t *attr, void *(*fn)(void *), void *arg) {
    if (__builtin_expect(attr != NULL || fn == NULL || own_is_default, 0))
        return spawn_any(thread, attr, fn, arg);
    struct worker *worker = enter();
    if (__builtin_expect(worker == NULL || thread == NULL, 0))
        return spawn_plain(worker, thread, fn, arg);
    struct thrum_unit *self = worker->current;
    struct magazine *units = worker->units.loaded, *stacks = worker->stacks[STACK_CLASS_DEFAULT].loaded;
    if (__builtin_expect(!may_run_at_once(worker, self) || switch_is_slow(worker) || units == NULL ||
                             units->count == 0 || stacks == NULL || stacks->count == 0,
                         0))
        return spawn_plain(worker, thread, fn, arg);
    struct thrum_unit *child = (struct thrum_unit *)(void *)units->objects[--units->count];
    child->stack_top = stacks->objects[--stacks->count];
    unit_set(child, fn, arg, JOIN_NONE);
    worker->current = child;
    arch_call(child, self, &self->sp, unit_first_frame(child));
    self->called_child = NULL;
    leave();
    *thread = child;
    return 0;
}

/* It keeps its mode. */
int thrum_revive(thrum_t unit, void *(*fn)(void *), void *arg) {
    int error = fn == NULL ? EINVAL : handle_check(unit);
    if (error != 0)
        return error;
    bool is_own =
        load_relaxed(&unit->kind) != UNIT_TASKLET && own_is_wanted((enum thrum_preempt_mode)unit->preempt);
    error = is_own ? own_make(&fn, &arg) : 0;
    if (error != 0)
        return error;
    struct worker *worker = enter();
    error = load_acquire(&unit->join) != JOIN_ENDED ? EBUSY : has_stack_for(worker, unit) ? 0 : EAGAIN;
    if (error == 0) {
        annotate_happens_after(unit);
        uint32_t slice = unit->slice;
        uint64_t deadline = unit->deadline;
        if (unit->extras)
            clear_extras(unit);
        unit->slice = slice;
        unit->deadline = deadline;
        unit->fn = fn;
        unit->arg = arg;
        unit->called_child = NULL;
        unit->escaped = true;
        unit->extras = slice != 0 || deadline != 0;
        unit->at_cancel_point = false;
        if (unit->stack_class == STACK_CLASS_USER)
            announce_user_stack(unit);
        store_relaxed(&unit->join, JOIN_NONE);
        enqueue(worker, unit);
    }
    leave();
    if (error != 0 && is_own)
        own_unmake(arg);
    return error;
}

/* --- tasklets ----------------------------------------------------------------------------------------- */

static __attribute__((noinline)) void tell_tasklet(struct worker *worker, struct thrum_unit *tasklet) {
    annotate_happens_after(tasklet);
    trace_run(worker, tasklet, THRUM_TRACE_TASKLET);
}

static __attribute__((noinline)) void tell_tasklet_end(struct worker *worker, struct thrum_unit *tasklet) {
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
