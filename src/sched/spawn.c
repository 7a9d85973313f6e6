// SPDX-License-Identifier: Apache-2.0
/* The life of a unit.
 *
 *   1. thrum_spawn takes a descriptor and a stack. The child runs at once, on a call: its parent waits in the run
 *      queue, where a thief may take it (work first: what is in flight stays as little as on a stack). Where the parent
 *      may not leave its worker, or the caller asks for it, the child is queued instead.
 *   2. unit_main runs fn(arg) on the child's stack.
 *   3. finish: the end is published in `join`, the stack goes back to the worker, and the worker goes on with the
 *      parent, if it is still there, by a plain return; else with what pick finds. A thread that ends within comes here
 *      by unit_ended instead (exit.c).
 *   4. The joiner reads the result and gives the descriptor back.
 *
 * The stack is given back while it is still stood on. That is safe as only this worker takes from its magazine, and
 * nothing does until the next unit runs; and a new unit of the same class takes exactly this stack over (run's
 * loop). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/container_of.h"
#include "sched/attributes.h"
#include "sched/cancel.h"
#include "sched/keys.h"
#include "sched/worker.h"
#include "thrum/thrum.h"

static char *unit_at(const struct depot_shape *shape, char *chunk, unsigned i) {
    return chunk + shape->size * (i + 1);
}

struct depot unit_depot = {.shape = {.chunk = 64 * 1024,
                                     .per_chunk = 64 * 1024 / sizeof(struct thrum_unit) - 1,
                                     .object = unit_at,
                                     .size = sizeof(struct thrum_unit)}};

/* --- the end ------------------------------------------------------------------------------------------ */

/* An external kernel thread has no cache of its own. */
static inline __attribute__((always_inline)) struct thrum_unit *unit_new(struct worker *worker) {
    return __builtin_expect(worker != NULL, 1) ? depot_get(&unit_depot, &worker->units)
                                               : depot_get_shared(&unit_depot);
}

static inline __attribute__((always_inline)) void unit_free(struct worker *worker, struct thrum_unit *unit) {
    if (__builtin_expect(unit->kind == UNIT_BOUND, 0)) {
        worker_unbind(unit->bound);
        unit->bound = NULL;
        unit->kind = UNIT_ULT;
    }
    if (__builtin_expect(worker != NULL, 1))
        depot_put(&unit_depot, &worker->units, unit);
    else
        depot_put_shared(&unit_depot, unit);
}

/* From here the descriptor is the joiner's. */
void unit_publish_end(struct worker *worker, struct thrum_unit *self) {
    struct thrum_unit *joiner = exchange_acq_rel(&self->join, JOIN_ENDED);
    if (joiner == JOIN_DETACHED)
        unit_free(worker, self);
    else if (__builtin_expect(join_watch_of(joiner) != NULL, 0))
        join_watch_of(joiner)->ended(worker, join_watch_of(joiner));
    else if (joiner != JOIN_NONE)
        unit_wake(worker, join_unit(joiner));
}

/* Is `next`, which we have just taken from our own queue, the parent that was left there for `self`, and has it not
 * run since? Then nobody has our handle yet, and nobody else can look at `join`. `begetting` alone does not say so: it
 * may be left from a child that had the same descriptor. */
static bool is_unborn_to_others(const struct thrum_unit *self, const struct thrum_unit *next,
                                const struct thrum_unit *maker) {
    return next != NULL && next == maker && next->begetting == self && !self->escaped;
}

/* Publishes, and says who runs next; NULL for the loop. */
static inline __attribute__((always_inline)) struct thrum_unit *
end_and_pick(struct worker *worker, struct thrum_unit *self, const struct thrum_unit *maker) {
    struct thrum_unit *joiner = load_acquire(&self->join);
    if (join_is_untimed(joiner) &&
        (joiner->kind == UNIT_ULT || (joiner->kind == UNIT_BOUND && joiner->bound == worker))) {
        store_relaxed(&self->join, JOIN_ENDED); /* the joiner alone looks at it, and it is next */
        return joiner;
    }
    struct thrum_unit *next = pick(worker);
    if (joiner == JOIN_NONE && is_unborn_to_others(self, next, maker))
        store_relaxed(&self->join, JOIN_ENDED);
    else
        unit_publish_end(worker, self);
    return next;
}

/* Gives the stack of one that has ended to the next, if that is new and of the same class, or back. */
static inline __attribute__((always_inline)) struct thrum_unit *hand_on_stack(struct worker *worker,
                                                                              struct thrum_unit *next,
                                                                              char *top, unsigned stack_class,
                                                                              bool *taken_over) {
    *taken_over = next != NULL && load_relaxed(&next->sp) == UNIT_NEW && next->stack_top == NULL &&
                  next->stack_class == stack_class;
    if (*taken_over) {
        next->stack_top = top;
        return next;
    }
    if (next != NULL && !unit_ready(worker, next)) /* before ours is there to be taken */
        next = NULL;
    depot_put(&stack_depots[stack_class], &worker->stacks[stack_class], top);
    return next != NULL ? next : worker->loop;
}

/* The stack of one that has ended will do for tasklets. */
static inline __attribute__((always_inline)) struct thrum_unit *run_tasklets(struct worker *worker,
                                                                             struct thrum_unit *next) {
    while (next != NULL && __builtin_expect(next->kind == UNIT_TASKLET, 0)) {
        tasklet_run(worker, next);
        next = pick(worker);
    }
    return next;
}

static ANNOTATE_BETWEEN __attribute__((noinline)) void tell_begin(struct worker *worker,
                                                                  struct thrum_unit *self, bool fresh) {
    annotate_begin(&worker->annotate, unit_stack(worker, self), fresh);
    annotate_happens_after(self);
    if (self->kind == UNIT_LOOP)
        annotate_is_loop(&worker->annotate);
}

static ANNOTATE_BETWEEN __attribute__((noinline)) void tell_end(struct worker *worker,
                                                                struct thrum_unit *self) {
    annotate_happens_before(self);
    annotate_end(&worker->annotate, unit_stack(worker, self));
}

/* `self` has ended, its result is in `arg`, and it stands on its stack still; `maker`, unless NULL, was left in the queue
 * for it. Whom its worker goes on with; *again: on this very stack. The user's own memory may be gone as soon as the end
 * is known: it is left first. */
static inline __attribute__((always_inline)) ANNOTATE_BETWEEN struct thrum_unit *
finish(struct worker *worker, struct thrum_unit *self, const struct thrum_unit *maker, bool *again) {
    if (__builtin_expect(annotate_on, 0))
        tell_end(worker, self);
    struct thrum_unit *next = worker->loop;
    *again = false;
    if (__builtin_expect(self->stack_class == STACK_CLASS_USER, 0)) {
        worker->ended = self;
    } else {
        char *top = self->stack_top;
        unsigned stack_class = self->stack_class;
        next = run_tasklets(worker, end_and_pick(worker, self, maker));
        next = hand_on_stack(worker, next, top, stack_class, again);
    }
    worker->current = next;
    return next;
}

/* Runs `self`, and those new ones after it that can have its stack. Called on the stack of the first by arch_call or
 * arch_begin; returns whom they go on with. */
struct thrum_unit *unit_main(struct thrum_unit *self, struct thrum_unit *parent) __attribute__((used));
/* The same after an end within (exit.c), of which nothing is left on the stack: called there by arch_end. */
struct thrum_unit *unit_ended(struct thrum_unit *self) __attribute__((used));

static struct worker *enter_at_end(void) {
    struct worker *worker = enter();
    if (__builtin_expect(worker == NULL, 0)) {
        leave();
        exit(EXIT_SUCCESS); /* the child of a fork, whose only thread this was (pthread_exit(3)) */
    }
    return worker;
}

/* `fresh`: the stack was come to by a switch; else another has just ended on it. */
static inline __attribute__((always_inline)) ANNOTATE_BETWEEN struct thrum_unit *
run(struct thrum_unit *self, struct thrum_unit *parent, bool fresh) {
    struct worker *worker = worker_here();
    if (__builtin_expect(annotate_on, 0))
        tell_begin(worker, self, fresh);
    if (parent != NULL) {
        parent->begetting = self;
        run_queue_push(worker, parent);
    }
    const struct thrum_unit *maker = parent;
    for (;;) {
        if (parent == NULL)
            arch_float_control_set(self->float_control); /* its maker's: we were not called by that */
        parent = NULL;
        leave();
        void *result = self->fn(self->arg);
        if (__builtin_expect(self->extras, 0) && self->values != NULL)
            keys_destroy(self);
        worker = enter_at_end();
        self->arg = result;
        bool again;
        struct thrum_unit *next = finish(worker, self, maker, &again);
        if (!again) {
            if (__builtin_expect(annotate_on, 0))
                annotate_leave_for_good(unit_stack(worker, next));
            return next;
        }
        self = next;
        maker = NULL;
        if (__builtin_expect(annotate_on, 0))
            tell_begin(worker, self, false);
    }
}

ANNOTATE_BETWEEN struct thrum_unit *unit_main(struct thrum_unit *self, struct thrum_unit *parent) {
    return run(self, parent, true);
}

ANNOTATE_BETWEEN struct thrum_unit *unit_ended(struct thrum_unit *self) {
    if (self->values != NULL)
        keys_destroy(self);
    struct worker *worker = enter_at_end();
    if (worker->exceptions != NULL) /* a handler that threw its thread's end again counts it as in flight */
        *worker->exceptions = (struct exception_globals){NULL, 0};
    if (self->heir != NULL && unit_take_suspended(self->heir))
        unit_wake(worker, self->heir); /* the newest: it is picked first */
    bool again;
    struct thrum_unit *next = finish(worker, self, NULL, &again);
    if (again)
        return run(next, NULL, false);
    if (__builtin_expect(annotate_on, 0))
        annotate_leave_for_good(unit_stack(worker, next));
    return next;
}

/* --- the beginning ------------------------------------------------------------------------------------ */

static __attribute__((noinline)) void clear_extras(struct thrum_unit *unit) {
    unit->permit = 0;
    unit->cancel = 0;
    unit->id = 0;
    unit->name[0] = unit->name[1] = 0;
    unit->has_cleanups = false;
}

static void unit_set(struct thrum_unit *unit, void *(*fn)(void *), void *arg, struct thrum_unit *join) {
    unit->fn = fn;
    unit->arg = arg;
    store_relaxed(&unit->join, join);
    unit->begetting = NULL;
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
}

/* False: `attributes` contradict themselves, or the runtime that there is. */
static bool unit_set_attributes(struct thrum_unit *unit, const struct attributes *attributes) {
    unit->stack_class = attributes->stack_class;
    unit->priority = attributes->priority;
    unit->deadline = attributes->deadline;
    unit->pool = attributes->pool;
    unit->cancellable = attributes->flags & THRUM_SPAWN_CANCELLABLE;
    unit->measured = attributes->flags & THRUM_SPAWN_MEASURED && attributes->stack_top == NULL;
    if (attributes->stack_top != NULL) {
        unit->stack_top = attributes->stack_top;
        unit_head_of(unit)->low = attributes->stack_low;
    }
    if (attributes->flags & THRUM_SPAWN_TASKLET) {
        unit->kind = UNIT_TASKLET;
        unit->stack_class = STACK_CLASS_NONE;
    } else if (attributes->pool != NULL) {
        unit->kind = UNIT_POOLED;
    }
    if (attributes->worker == 0)
        return true;
    return unit->kind == UNIT_ULT && unit_bind(unit, attributes->worker - 1);
}

/* Runs the child now, on a call. `parent` is `self` if it is to be in the queue meanwhile, else NULL. */
static inline __attribute__((always_inline)) void run_child(struct worker *worker, struct thrum_unit *self,
                                                            struct thrum_unit *child,
                                                            struct thrum_unit *parent) {
    worker->current = child;
    if (switch_is_slow(worker))
        call_slow(worker, self, child, parent);
    else
        arch_call(&self->sp, unit_first_frame(child), child, parent);
}

/* To be begun by whoever takes it from a queue. */
static void prepare(struct thrum_unit *unit) {
    if (unit->stack_class != STACK_CLASS_USER)
        unit->stack_top = NULL;
    unit->float_control = arch_float_control();
    store_relaxed(&unit->sp, UNIT_NEW);
}

static void enqueue(struct worker *worker, struct thrum_unit *unit) {
    prepare(unit);
    unit_wake(worker, unit);
}

/* Where the maker may wait in the run queue meanwhile. */
static bool may_run_at_once(const struct worker *worker, const thrum_attr_t *attr) {
    if (worker == NULL || worker->current->kind != UNIT_ULT || worker->obeys)
        return false;
    if (attr == NULL)
        return true;
    const struct attributes *attributes = attributes_of(attr);
    return (attributes->flags & ~(unsigned)THRUM_SPAWN_CANCELLABLE) == 0 && attributes->pool == NULL &&
           attributes->worker == 0 && attributes->stack_top == NULL;
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
    self->begetting = NULL;
    leave();
    if (thread != NULL)
        *thread = unit;
    return 0;
}

/* One that is queued gets its stack when it begins, mostly that of the one before it. Is there one to be had at all?
 * Else it might wait for ever. */
static bool has_stack_for(struct worker *worker, const struct thrum_unit *unit) {
    if (unit->stack_class >= STACK_CLASSES)
        return true; /* it needs none */
    struct depot *depot = &stack_depots[unit->stack_class];
    struct depot_cache *cache = worker != NULL ? &worker->stacks[unit->stack_class] : &depot->shared;
    if (worker != NULL && cache->loaded != NULL && cache->loaded->count > 0)
        return true;
    char *top = worker != NULL ? depot_get(depot, cache) : depot_get_shared(depot);
    if (top != NULL && worker != NULL)
        depot_put(depot, cache, top);
    else if (top != NULL)
        depot_put_shared(depot, top);
    return top != NULL;
}

int thrum_spawn(thrum_t *thread, const thrum_attr_t *attr, void *(*fn)(void *), void *arg) {
    struct worker *worker = enter();
    if (__builtin_expect(worker == NULL && load_acquire(&scheduler.count) == 0, 0)) {
        leave();
        int error = scheduler_start_default();
        if (error != 0)
            return error;
        enter();
    }
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
    if (__builtin_expect(may_run_at_once(worker, attr), 1))
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

/* --- tasklets ----------------------------------------------------------------------------------------- */

struct thrum_unit *unit_make_tasklet(struct worker *worker, void *(*fn)(void *)) {
    struct thrum_unit *tasklet = unit_new(worker);
    if (tasklet == NULL)
        return NULL;
    unit_set(tasklet, fn, NULL, JOIN_DETACHED);
    tasklet->kind = UNIT_TASKLET;
    tasklet->stack_class = STACK_CLASS_NONE;
    tasklet->pool = NULL;
    prepare(tasklet);
    return tasklet;
}

void tasklet_run(struct worker *worker, struct thrum_unit *tasklet) {
    struct thrum_unit *host = worker->current;
    uint64_t float_control = arch_float_control();
    worker->current = tasklet;
    arch_float_control_set(tasklet->float_control);
    annotate_happens_after(tasklet);
    leave();
    tasklet->arg = tasklet->fn(tasklet->arg);
    enter();
    arch_float_control_set(float_control);
    annotate_happens_before(tasklet);
    worker->current = host;
    unit_publish_end(worker, tasklet);
}

/* --- joining ------------------------------------------------------------------------------------------ */

/* It is next in our own queue and never ran: run it on a call, from which it returns to us. */
static bool join_by_running(struct worker *worker, struct thrum_unit *self, struct thrum_unit *next,
                            struct thrum_unit *unit) {
    if (next != unit || load_relaxed(&unit->sp) != UNIT_NEW)
        return false;
    if (unit->kind == UNIT_TASKLET) {
        tasklet_run(worker, unit);
        return true;
    }
    if (self->kind != UNIT_ULT || unit->kind != UNIT_ULT) /* it would be in the queue, for thieves */
        return false;
    if (unit->stack_class == STACK_CLASS_USER || unit->measured)
        return false;
    unit->stack_top = depot_get(&stack_depots[unit->stack_class], &worker->stacks[unit->stack_class]);
    if (unit->stack_top == NULL)
        return false;
    unit_announce(self);
    store_relaxed(&unit->join, self);
    run_child(worker, self, unit, NULL);
    return true;
}

static void join_by_waiting(struct worker *worker, struct thrum_unit *self, struct thrum_unit *next,
                            struct thrum_unit *unit) {
    struct thrum_unit *nobody = JOIN_NONE;
    unit_announce(self);
    if (!cas_acq_rel(&unit->join, &nobody, self)) { /* it has ended meanwhile */
        if (next != NULL)
            unit_wake(worker, next);
    } else if (worker == NULL) {
        unit_block_external(self);
    } else {
        switch_to(worker, self, next != NULL ? next : worker->loop);
    }
}

/* It has ended: its result, and its descriptor back unless its handle is to be kept. Leaves. */
static inline __attribute__((always_inline)) void collect(struct worker *worker, struct thrum_unit *unit,
                                                          void **result, bool keep) {
    annotate_happens_after(unit);
    if (result != NULL)
        *result = unit->arg;
    if (!keep)
        unit_free(worker, unit);
    leave();
}

int thrum_revive(thrum_t unit, void *(*fn)(void *), void *arg) {
    struct worker *worker = enter();
    int error = load_acquire(&unit->join) != JOIN_ENDED ? EBUSY : has_stack_for(worker, unit) ? 0 : EAGAIN;
    if (error == 0) {
        annotate_happens_after(unit);
        if (unit->extras)
            clear_extras(unit);
        unit->fn = fn;
        unit->arg = arg;
        unit->begetting = NULL;
        unit->escaped = true;
        unit->extras = unit->at_cancel_point = false;
        store_relaxed(&unit->join, JOIN_NONE);
        enqueue(worker, unit);
    }
    leave();
    return error;
}

static int join_until(thrum_t unit, void **result, uint64_t deadline, bool keep);

static inline __attribute__((always_inline)) int join(struct thrum_unit *unit, void **result, bool keep) {
    struct worker *worker = enter();
    if (load_acquire(&unit->join) != JOIN_ENDED) {
        struct thrum_unit *self = unit_self(worker);
        if (unit == self) {
            leave();
            return EDEADLK;
        }
        if (__builtin_expect(self->cancellable, 0)) {
            leave();
            return join_until(unit, result, CANCEL_FAR, keep);
        }
        if (worker == NULL && load_acquire(&scheduler.count) == 0) {
            leave();
            return ESRCH;
        }
        struct thrum_unit *next = worker != NULL ? pick(worker) : NULL;
        if (worker == NULL || !join_by_running(worker, self, next, unit))
            join_by_waiting(worker, self, next, unit);
        worker = worker_here();
    }
    collect(worker, unit, result, keep);
    return 0;
}

int thrum_join(thrum_t unit, void **result) {
    return join(unit, result, false);
}

int thrum_join_keep(thrum_t unit, void **result) {
    return join(unit, result, true);
}

static int try_join(struct thrum_unit *unit, void **result, bool keep) {
    struct worker *worker = enter();
    if (load_acquire(&unit->join) == JOIN_ENDED) {
        collect(worker, unit, result, keep);
        return 0;
    }
    int error = EBUSY;
    if (worker != NULL && unit == worker->current)
        error = EDEADLK;
    else if (worker == NULL && load_acquire(&scheduler.count) == 0)
        error = ESRCH;
    leave();
    return error;
}

int thrum_try_join(thrum_t unit, void **result) {
    return try_join(unit, result, false);
}

struct join_wait {
    struct timer timer;
    struct cancel_watch watch;
    struct thrum_unit *unit, *joiner;
    bool timed_out;
};

/* It waits no longer. False: the thread's end has taken it from `join` before. */
static bool stop_joining(struct join_wait *wait) {
    struct thrum_unit *timed = join_timed(wait->joiner);
    if (!cas_acq_rel(&wait->unit->join, &timed, JOIN_NONE))
        return false;
    wait->timed_out = true;
    return true;
}

/* `unit` is still there: the joiner does not give it back before it has stopped the timer. */
static void join_time_out(struct worker *worker, struct timer *timer) {
    struct join_wait *wait = (struct join_wait *)(void *)timer;
    struct thrum_unit *joiner = wait->joiner;
    if (stop_joining(wait))
        unit_wake(worker, joiner);
}

static void join_be_cancelled(struct worker *worker, struct cancel_watch *watch) {
    join_time_out(worker, &container_of(watch, struct join_wait, watch)->timer);
}

static void join_external_until(struct join_wait *wait) {
    if (!unit_block_external_until(wait->joiner, wait->timer.deadline) && !stop_joining(wait))
        unit_block_external(wait->joiner);
}

/* The joiner stands in `join` before there is a timer that takes it from there. */
static void join_by_waiting_until(struct worker *worker, struct join_wait *wait) {
    struct thrum_unit *nobody = JOIN_NONE;
    unit_announce(wait->joiner);
    if (!cas_acq_rel(&wait->unit->join, &nobody, join_timed(wait->joiner)))
        return; /* it has ended meanwhile */
    if (worker == NULL) {
        join_external_until(wait);
        return;
    }
    bool is_point = cancel_is_point(wait->joiner), has_timer = wait->timer.deadline < CANCEL_FAR;
    if (is_point && !cancel_watch(wait->joiner, &wait->watch)) {
        if (stop_joining(wait))
            return;
        is_point = has_timer = false; /* it has ended, and is about to wake us */
    }
    if (has_timer)
        timer_start(worker, &wait->timer);
    unit_block(worker, wait->joiner);
    if (has_timer)
        timer_stop(worker_here(), &wait->timer);
    if (is_point)
        cancel_unwatch(wait->joiner);
}

static int join_until(thrum_t unit, void **result, uint64_t deadline, bool keep) {
    int error = try_join(unit, result, keep);
    if (error != EBUSY)
        return error;
    if (deadline <= timer_now())
        return ETIMEDOUT;
    struct worker *worker = enter();
    struct join_wait wait = {
        .timer = {.fire = join_time_out}, .watch = {.give_up = join_be_cancelled}, .unit = unit};
    wait.timer.deadline = cancel_point(worker, deadline);
    wait.joiner = unit_self(worker);
    join_by_waiting_until(worker, &wait);
    worker = worker_here();
    if (!wait.timed_out) {
        collect(worker, unit, result, keep);
        return 0;
    }
    leave();
    return cancel_act(ETIMEDOUT);
}

int thrum_join_until(thrum_t unit, void **result, uint64_t deadline) {
    return deadline != TIMER_NEVER ? join_until(unit, result, deadline, false) : thrum_join(unit, result);
}

int thrum_detach(thrum_t unit) {
    struct worker *worker = enter();
    struct thrum_unit *nobody = JOIN_NONE;
    int error = 0;
    if (!cas_acq_rel(&unit->join, &nobody, JOIN_DETACHED)) {
        if (nobody == JOIN_ENDED)
            unit_free(worker, unit);
        else
            error = EINVAL;
    }
    leave();
    return error;
}
