// SPDX-License-Identifier: Apache-2.0
/* Joining: until a thread has ended, for its result. What stands in its `join` word meanwhile: unit.h. */
#include <errno.h>

#include "base/container_of.h"
#include "sched/life.h"
#include "sched/time/timed_wait.h"
#include "thrum/thrum.h"

/* A handle that is used up: a second join or detach finds a detached thread. Once the descriptor has become another
 * thread's, no function can tell. */
static inline void use_up(struct thrum_unit *unit) {
    store_relaxed(&unit->join, JOIN_DETACHED);
}

/* It is next in our own queue and never ran: run it on a call, from which it returns to us. */
INSIDE static bool join_by_running(struct worker *worker, struct thrum_unit *self, struct thrum_unit *next,
                                   struct thrum_unit *unit) {
    if (next == NULL || next != unit || load_relaxed(&unit->sp) != UNIT_NEW)
        return false;
    uint8_t kind = load_relaxed(&self->kind);
    if ((kind != UNIT_ULT && kind != UNIT_BOUND) || load_relaxed(&unit->kind) != UNIT_ULT)
        return false; /* the end returns to a joiner that may run on any worker, or on this one only */
    if (__builtin_expect(unit_is_fronts(self), 0))
        return false;
    if (unit->stack_class == STACK_CLASS_USER || unit->measured)
        return false;
    unit->stack_top = depot_get(&stack_depots[unit->stack_class], &worker->stacks[unit->stack_class]);
    if (unit->stack_top == NULL)
        return false;
    unit_await(self, AWAITS_END, unit);
    store_relaxed(&unit->join, self);
    run_child(worker, self, unit, NULL);
    unit_await_no_more(self);
    return true;
}

/* Runs the tasklets that come before it, and itself if it is one, on our own stack. True: it has ended. Else *next is
 * the next unit, or NULL. */
INSIDE static __attribute__((noinline)) bool join_by_tasklets(struct worker *worker, struct thrum_unit **next,
                                                              struct thrum_unit *unit) {
    do {
        if (*next == unit) {
            tasklet_call(worker, unit);
            store_relaxed(&unit->join, JOIN_ENDED); /* no other thread may read it: we join it */
            return true;
        }
        tasklet_run(worker, *next);
        if (load_acquire(&unit->join) == JOIN_ENDED) /* pairs with unit_publish_end */
            return true;
        *next = pick(worker);
    } while (*next != NULL && load_relaxed(&(*next)->kind) == UNIT_TASKLET);
    return false;
}

/* 0, or EINVAL: another thread joins it, or has detached it. */
INSIDE static int join_by_waiting(struct worker *worker, struct thrum_unit *self, struct thrum_unit *next,
                                  struct thrum_unit *unit) {
    struct thrum_unit *none = JOIN_NONE;
    unit_await(self, AWAITS_END, unit);
    /* Pairs with unit_publish_end: the result is there, or the joiner. */
    if (!cas_acq_rel(&unit->join, &none, self)) { /* it has ended meanwhile, unless it is misused */
        unit_await_no_more(self);
        if (next != NULL)
            unit_wake(worker, next);
        return none == JOIN_ENDED ? 0 : EINVAL;
    }
    if (worker == NULL)
        unit_block_external(self);
    else
        switch_to(worker, self, next != NULL ? next : worker->loop);
    unit_await_no_more(self);
    return 0;
}

/* It has ended: takes its result, and frees its descriptor unless the handle stays valid. */
LEAVES static inline __attribute__((always_inline)) void
collect(struct worker *worker, struct thrum_unit *unit, void **result, bool keep) {
    annotate_happens_after(unit);
    if (result != NULL)
        *result = unit->arg;
    if (!keep) {
        use_up(unit);
        unit_free(worker, unit);
    }
    leave();
}

static int join_until(thrum_t unit, void **result, uint64_t deadline, bool keep);

LEAVES static inline __attribute__((always_inline)) int join(struct worker *worker, struct thrum_unit *unit,
                                                             void **result, bool keep) {
    if (__builtin_expect(worker == NULL, 0) && runtime_has_ended()) {
        leave();
        return ESRCH;
    }
    const struct thrum_unit *joiner = load_acquire(&unit->join); /* pairs with unit_publish_end */
    if (joiner != JOIN_ENDED) {
        struct thrum_unit *self = unit_self(worker);
        if (unit == self) {
            leave();
            return EDEADLK;
        }
        if (__builtin_expect(joiner != JOIN_NONE, 0)) {
            leave();
            return EINVAL;
        }
        if (__builtin_expect(!unit_may_wait(self), 0)) {
            leave();
            return EPERM;
        }
        if (__builtin_expect(self->cancellable, 0)) {
            leave();
            return join_until(unit, result, CANCEL_FAR, keep);
        }
        if (worker == NULL && !load_acquire(&runtime.open)) {
            leave();
            return ESRCH;
        }
        if (worker != NULL && __builtin_expect(is_in_region(), 0))
            unit_waits_in_region(AWAITS_END);
        struct thrum_unit *next = worker != NULL ? pick(worker) : NULL;
        bool has_ended = next != NULL && __builtin_expect(load_relaxed(&next->kind) == UNIT_TASKLET, 0) &&
                         join_by_tasklets(worker, &next, unit);
        int error = 0;
        if (!has_ended && (worker == NULL || !join_by_running(worker, self, next, unit)))
            error = join_by_waiting(worker, self, next, unit);
        worker = worker_here();
        if (__builtin_expect(error != 0, 0)) {
            leave();
            return error;
        }
    }
    collect(worker, unit, result, keep);
    return 0;
}

LEAVES static __attribute__((noinline)) int join_any(struct worker *worker, struct thrum_unit *unit,
                                                     void **result) {
    return join(worker, unit, result, false);
}

/* join() and collect() for the usual case, which must be short: the thread has ended, is bound to no worker, and the worker has
 * room for its descriptor. */
int thrum_join(thrum_t unit, void **result) {
    if (__builtin_expect(unit == NULL, 0))
        return EINVAL;
    struct worker *worker = enter();
    /* Pairs with unit_publish_end: the result is there. */
    if (__builtin_expect(worker == NULL || load_acquire(&unit->join) != JOIN_ENDED || watch_on, 0))
        return join_any(worker, unit, result);
    struct magazine *units = worker->units.loaded;
    if (__builtin_expect(unit->kind == UNIT_BOUND || units == NULL || units->count == MAGAZINE_SIZE, 0))
        return join_any(worker, unit, result);
    if (result != NULL)
        *result = unit->arg;
    use_up(unit);
    store_relaxed(&unit->kind, (uint8_t)UNIT_FREE);
    units->objects[units->count++] = (char *)unit;
    leave();
    return 0;
}

int thrum_join_keep(thrum_t unit, void **result) {
    if (__builtin_expect(unit == NULL, 0))
        return EINVAL;
    return join(enter(), unit, result, true);
}

static int try_join(struct thrum_unit *unit, void **result, bool keep) {
    int error = handle_check(unit);
    if (error != 0)
        return error;
    struct worker *worker = enter();
    const struct thrum_unit *joiner = load_acquire(&unit->join); /* pairs with unit_publish_end */
    if (joiner == JOIN_ENDED) {
        collect(worker, unit, result, keep);
        return 0;
    }
    error = joiner == JOIN_NONE ? EBUSY : EINVAL;
    if (worker != NULL && unit == worker->current)
        error = EDEADLK;
    else if (worker == NULL && !load_acquire(&runtime.open))
        error = ESRCH;
    leave();
    return error;
}

int thrum_try_join(thrum_t unit, void **result) {
    return try_join(unit, result, false);
}

int thrum_try_join_keep(thrum_t unit, void **result) {
    return try_join(unit, result, true);
}

struct join_wait {
    struct timed_wait timed_wait;
    struct thrum_unit *unit;
    bool timed_out;
};

/* `unit` is still there: the joiner does not give it back before it has stopped the timer. */
static bool stop_joining(struct timed_wait *timed_wait) {
    struct join_wait *wait = container_of(timed_wait, struct join_wait, timed_wait);
    struct thrum_unit *timed = join_timed(timed_wait->unit);
    /* Pairs with unit_publish_end: one of the two has the joiner. */
    if (!cas_acq_rel(&wait->unit->join, &timed, JOIN_NONE))
        return false;
    wait->timed_out = true;
    return true;
}

static int join_until(thrum_t unit, void **result, uint64_t deadline, bool keep) {
    int error = try_join(unit, result, keep);
    if (error != EBUSY)
        return error;
    if (deadline <= timer_now())
        return ETIMEDOUT;
    if (!unit_here_may_wait())
        return EPERM;
    struct worker *worker = enter();
    struct thrum_unit *self = unit_self(worker), *none = JOIN_NONE;
    struct join_wait wait = {.timed_wait = {.unit = self, .give_up = stop_joining}, .unit = unit};
    unit_await_until(self, AWAITS_END, unit, deadline);
    /* Pairs with unit_publish_end and stop_joining. */
    if (cas_acq_rel(&unit->join, &none, join_timed(self))) {
        wait.timed_wait.timer.deadline = cancel_point(worker, deadline);
        unit_block_timed(worker, &wait.timed_wait);
        worker = worker_here();
    } else if (none != JOIN_ENDED) {
        unit_await_no_more(self);
        leave();
        return EINVAL;
    }
    unit_await_no_more(self);
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

int thrum_join_keep_until(thrum_t unit, void **result, uint64_t deadline) {
    return deadline != TIMER_NEVER ? join_until(unit, result, deadline, true) : thrum_join_keep(unit, result);
}

int thrum_detach(thrum_t unit) {
    int error = handle_check(unit);
    if (error != 0)
        return error;
    struct worker *worker = enter();
    struct thrum_unit *none = JOIN_NONE;
    if (!cas_acq_rel(&unit->join, &none, JOIN_DETACHED)) { /* pairs with unit_publish_end */
        if (none == JOIN_ENDED) {
            use_up(unit);
            unit_free(worker, unit);
        } else {
            error = EINVAL;
        }
    }
    leave();
    return error;
}

bool thrum_is_detached(thrum_t unit) {
    /* Pairs with thrum_detach. */
    return handle_check(unit) == 0 && load_acquire(&unit->join) == JOIN_DETACHED;
}
