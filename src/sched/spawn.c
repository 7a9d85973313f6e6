// SPDX-License-Identifier: Apache-2.0
/* The life of a unit.
 *
 *   1. thrum_spawn takes a descriptor and a stack. The child runs at once, on a call: its parent waits in the run
 *      queue, where a thief may take it (work first: what is in flight stays as little as on a stack). Where the parent
 *      may not leave its worker, or the caller asks for it, the child is queued instead.
 *   2. unit_main runs fn(arg) on the child's stack.
 *   3. unit_end: the result is stored, the end is published in `join`, the stack goes back to the worker, and the
 *      worker goes on with the parent, if it is still there, by a plain return; else with what pick finds.
 *   4. The joiner reads the result and gives the descriptor back.
 *
 * The stack is given back while it is still stood on. That is safe as only this worker takes from its magazine, and
 * nothing does until the next unit runs; and a new unit of the same class takes exactly this stack over (unit_main's
 * loop). */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "sched/attributes.h"
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

static void unit_free(struct worker *worker, struct thrum_unit *unit) {
    depot_put(&unit_depot, &worker->units, unit);
}

/* Publishes the end. From here the descriptor is the joiner's. */
static void publish(struct worker *worker, struct thrum_unit *self) {
    struct thrum_unit *joiner = exchange_acq_rel(&self->join, JOIN_ENDED);
    if (joiner == JOIN_DETACHED)
        unit_free(worker, self);
    else if (joiner != JOIN_NONE)
        unit_wake(worker, joiner);
}

/* Is `next`, which we have just taken from our own queue, the parent that was left there for `self`, and has it not
 * run since? Then nobody has our handle yet, and nobody else can look at `join`. */
static bool is_unborn_to_others(const struct thrum_unit *self, const struct thrum_unit *next) {
    return next != NULL && next->begetting == self && !self->escaped;
}

/* Publishes, and says who runs next; NULL for the loop. */
static struct thrum_unit *end_and_pick(struct worker *worker, struct thrum_unit *self) {
    struct thrum_unit *joiner = load_acquire(&self->join);
    if (joiner > JOIN_DETACHED &&
        (joiner->kind == UNIT_ULT || (joiner->kind == UNIT_BOUND && joiner->bound == worker))) {
        store_relaxed(&self->join, JOIN_ENDED); /* the joiner alone looks at it, and it is next */
        return joiner;
    }
    struct thrum_unit *next = pick(worker);
    if (joiner == JOIN_NONE && is_unborn_to_others(self, next))
        store_relaxed(&self->join, JOIN_ENDED);
    else
        publish(worker, self);
    return next;
}

/* Gives the stack of one that has ended to the next, if that is new and of the same class, or back. */
static struct thrum_unit *hand_on_stack(struct worker *worker, struct thrum_unit *next, char *top,
                                        unsigned stack_class, bool *taken_over) {
    *taken_over = next != NULL && load_relaxed(&next->sp) == UNIT_NEW && next->stack_top == NULL &&
                  next->stack_class == stack_class;
    if (*taken_over) {
        next->stack_top = top;
        return next;
    }
    if (next != NULL && !unit_ready(worker, next)) /* before ours is there to be taken */
        next = NULL;
    if (stack_class != STACK_CLASS_USER)
        depot_put(&stack_depots[stack_class], &worker->stacks[stack_class], top);
    return next != NULL ? next : &worker->loop;
}

/* Runs `self`, and those new ones after it that can have its stack. Called on the stack of the first by arch_call or
 * arch_begin; returns whom they go on with. */
struct thrum_unit *unit_main(struct thrum_unit *self, struct thrum_unit *parent) __attribute__((used));

struct thrum_unit *unit_main(struct thrum_unit *self, struct thrum_unit *parent) {
    struct worker *worker = worker_here();
    if (parent != NULL) {
        parent->begetting = self;
        run_queue_push(worker, parent);
    }
    for (;;) {
        leave();
        void *result = self->fn(self->arg);
        worker = enter();
        self->arg = result;
        char *top = self->stack_top;
        unsigned stack_class = self->stack_class;
        bool again;
        struct thrum_unit *next = hand_on_stack(worker, end_and_pick(worker, self), top, stack_class, &again);
        worker->current = next;
        if (!again)
            return next;
        self = next;
    }
}

/* --- the beginning ------------------------------------------------------------------------------------ */

static void unit_set(struct thrum_unit *unit, void *(*fn)(void *), void *arg, struct thrum_unit *join,
                     unsigned stack_class) {
    unit->fn = fn;
    unit->arg = arg;
    store_relaxed(&unit->join, join);
    unit->begetting = NULL;
    unit->kind = UNIT_ULT;
    unit->stack_class = (uint8_t)stack_class;
    unit->escaped = false;
}

/* Runs the child now; the parent is in the queue meanwhile. */
static void run_child(struct worker *worker, struct thrum_unit *parent, struct thrum_unit *child) {
    worker->current = child;
    arch_call(&parent->sp, child->stack_top, child, parent);
    parent->begetting = NULL;
}

/* Not on a worker: no caches. */
static struct thrum_unit *unit_new_external(void) {
    struct depot_cache cache = {NULL, NULL};
    struct thrum_unit *unit = depot_get(&unit_depot, &cache);
    depot_flush(&unit_depot, &cache);
    return unit;
}

static void enqueue(struct worker *worker, struct thrum_unit *unit) {
    unit->stack_top = NULL;
    store_relaxed(&unit->sp, UNIT_NEW);
    unit_wake(worker, unit);
}

int thrum_spawn(thrum_t *thread, const thrum_attr_t *attr, void *(*fn)(void *), void *arg) {
    const unsigned stack_class = attr == NULL ? STACK_CLASS_DEFAULT : attributes_of(attr)->stack_class;
    const unsigned flags = attr == NULL ? 0 : attributes_of(attr)->flags;
    struct worker *worker = enter();
    struct thrum_unit *unit = worker != NULL ? depot_get(&unit_depot, &worker->units) : unit_new_external();
    if (unit == NULL) {
        leave();
        return EAGAIN;
    }
    unit_set(unit, fn, arg, thread == NULL ? JOIN_DETACHED : JOIN_NONE, stack_class);
    if (worker == NULL || flags & THRUM_SPAWN_QUEUED || worker->current->kind != UNIT_ULT) {
        if (thread != NULL)
            *thread = unit;
        enqueue(worker, unit);
        leave();
        return 0;
    }
    unit->stack_top = depot_get(&stack_depots[stack_class], &worker->stacks[stack_class]);
    if (unit->stack_top == NULL) {
        unit_free(worker, unit);
        leave();
        return EAGAIN;
    }
    run_child(worker, worker->current, unit);
    leave();
    if (thread != NULL)
        *thread = unit;
    return 0;
}

/* --- joining ------------------------------------------------------------------------------------------ */

/* It is next in our own queue and never ran: run it on a call, from which it returns to us. */
static bool join_by_running(struct worker *worker, struct thrum_unit *self, struct thrum_unit *next,
                            struct thrum_unit *unit) {
    if (next != unit || load_relaxed(&unit->sp) != UNIT_NEW)
        return false;
    unit->stack_top = depot_get(&stack_depots[unit->stack_class], &worker->stacks[unit->stack_class]);
    if (unit->stack_top == NULL)
        return false;
    unit_announce(self);
    store_relaxed(&unit->join, self);
    worker->current = unit;
    arch_call(&self->sp, unit->stack_top, unit, NULL);
    return true;
}

static void join_by_waiting(struct worker *worker, struct thrum_unit *self, struct thrum_unit *next,
                            struct thrum_unit *unit) {
    struct thrum_unit *nobody = JOIN_NONE;
    unit_announce(self);
    if (!cas_acq_rel(&unit->join, &nobody, self)) { /* it has ended meanwhile */
        if (next != NULL)
            run_queue_push(worker, next);
    } else if (worker == NULL) {
        unit_block_external(self);
    } else {
        switch_to(worker, self, next != NULL ? next : &worker->loop);
    }
}

int thrum_join(thrum_t unit, void **result) {
    struct worker *worker = enter();
    if (load_acquire(&unit->join) != JOIN_ENDED) {
        struct thrum_unit *self = unit_self(worker);
        if (unit == self) {
            leave();
            return EDEADLK;
        }
        struct thrum_unit *next = worker != NULL ? pick(worker) : NULL;
        if (worker == NULL || self->kind != UNIT_ULT || !join_by_running(worker, self, next, unit))
            join_by_waiting(worker, self, next, unit);
        worker = worker_here();
    }
    if (result != NULL)
        *result = unit->arg;
    if (worker != NULL) {
        unit_free(worker, unit);
    } else {
        struct depot_cache cache = {NULL, NULL};
        depot_put(&unit_depot, &cache, unit);
        depot_flush(&unit_depot, &cache);
    }
    leave();
    return 0;
}

int thrum_detach(thrum_t unit) {
    struct worker *worker = enter();
    struct thrum_unit *nobody = JOIN_NONE;
    int error = 0;
    if (!cas_acq_rel(&unit->join, &nobody, JOIN_DETACHED)) {
        if (nobody == JOIN_ENDED && worker != NULL)
            unit_free(worker, unit);
        else
            error = nobody == JOIN_ENDED ? 0 : EINVAL;
    }
    leave();
    return error;
}

/* --- giving way --------------------------------------------------------------------------------------- */

static void yield_push(struct worker *worker, struct thrum_unit *self) {
    if (self->kind != UNIT_ULT)
        fifo_push(&worker->inbox, self);
    else if (!yield_ring_push(&worker->yields, self))
        fifo_push(&scheduler.shared, self);
    idle_wake_check(&scheduler.idle);
}

void thrum_yield(void) {
    struct worker *worker = enter();
    if (worker != NULL) {
        struct thrum_unit *next = pick(worker), *self = worker->current;
        if (next != NULL) {
            unit_announce(self);
            yield_push(worker, self);
            switch_to(worker, self, next);
        }
    }
    leave();
}

thrum_t thrum_self(void) {
    struct worker *worker = enter();
    struct thrum_unit *self = worker != NULL ? worker->current : NULL;
    if (self != NULL)
        self->escaped = true;
    leave();
    return self;
}
