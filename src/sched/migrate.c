// SPDX-License-Identifier: Apache-2.0
/* Moving threads: to a worker, to a pool, or to any worker.
 *
 * `kind`, `bound` and `pool` say where a unit is enqueued when it becomes runnable; its waker reads them. Any thread
 * may give it a place: `bound` or `pool` is written before the `kind` that makes it valid. A waker that read the old
 * kind enqueues the unit at the old place; the next time it goes to the new one. Only the unit itself, while it runs,
 * can leave the worker that it is bound to, since that worker must remain for wakers that are about to enqueue it
 * there. */
#include <errno.h>

#include "base/misuse.h"
#include "os/lock.h"
#include "sched/pool/pool.h"
#include "sched/worker.h"
#include "thrum/pool.h"

/* Changes of place are made under this lock, one at a time. Wakers read without it. */
static struct lock change;

/* In the place of a worker's number (<thrum/trace.h>). */
#define TRACE_ANYWHERE (~UINT64_C(0))
#define TRACE_POOL     (~UINT64_C(1))

static struct worker *bind_worker(uint32_t id) {
    if (id >= load_acquire(&runtime.count))
        return NULL;
    struct worker *worker = runtime.workers[id];
    return worker_bind(worker) ? worker : NULL;
}

static void set_bound(struct thrum_unit *unit, struct worker *worker) {
    store_relaxed(&unit->bound, worker);
    store_release(&unit->kind, (uint8_t)UNIT_BOUND); /* pairs with unit_place */
}

bool unit_bind(struct thrum_unit *unit, uint32_t id) {
    struct worker *worker = bind_worker(id);
    if (worker != NULL)
        set_bound(unit, worker);
    return worker != NULL;
}

/* Under `change`: may it be moved? 0 or an errno. */
static int may_move(const struct thrum_unit *unit, bool is_self) {
    switch (unit->kind) {
    case UNIT_ULT:
    case UNIT_POOLED: return 0;
    case UNIT_BOUND: return unit->is_primary ? EPERM : is_self ? 0 : EBUSY;
    default: return EPERM;
    }
}

/* To that worker, or else that pool, or else anywhere. */
INSIDE static int move(struct thrum_unit *unit, bool is_self, struct worker *to, struct thrum_pool *pool) {
    lock_acquire(&change);
    struct worker *from = NULL;
    int error = may_move(unit, is_self);
    if (error == 0 && unit->kind == UNIT_BOUND)
        from = unit->bound;
    if (error == 0 && to != NULL) {
        set_bound(unit, to);
        fetch_add_relaxed(&to->counters.migrations, 1);
    } else if (error == 0) {
        if (pool != NULL) {
            store_relaxed(&pool->was_used, true);
            /* Pairs with unit_wake_elsewhere; the kind may say already that it counts. */
            store_release(&unit->pool, pool);
        }
        store_release(&unit->kind, (uint8_t)(pool != NULL ? UNIT_POOLED : UNIT_ULT));
        store_relaxed(&unit->bound, NULL);
    }
    lock_release(&change);
    if (from != NULL)
        worker_unbind(from);
    fence_seq_cst(); /* after the new place; pairs with fence_rare in tick_rest */
    if (error == 0 && load_relaxed(&runtime.idle.resting) != 0)
        tick_wake_resting(); /* it may run on one, and must leave that */
    return error;
}

/* What it is bound to stays so meanwhile: that worker must not leave. */
void unit_set_solo(struct thrum_unit *unit, struct worker *solo) {
    lock_acquire(&change);
    solo->solo.unit = unit;
    solo->solo.kind = unit->kind;
    solo->solo.bound = unit->bound;
    store_relaxed(&unit->bound, solo);
    store_release(&unit->kind, (uint8_t)UNIT_SOLO); /* pairs with unit_place */
    lock_release(&change);
}

void unit_unset_solo(struct thrum_unit *self) {
    lock_acquire(&change);
    const struct worker *solo = self->bound;
    store_relaxed(&self->bound, solo->solo.bound);
    store_release(&self->kind, solo->solo.kind); /* pairs with unit_place */
    lock_release(&change);
}

void unit_set_pool(struct thrum_unit *unit, struct thrum_pool *pool) {
    if (unit_place(unit) == UNIT_POOLED && load_relaxed(&unit->pool) == pool)
        return;
    lock_acquire(&change);
    store_release(&unit->pool, pool); /* pairs with unit_wake_elsewhere */
    if (unit->kind == UNIT_ULT || unit->kind == UNIT_POOLED)
        store_release(&unit->kind, (uint8_t)(pool != NULL ? UNIT_POOLED : UNIT_ULT));
    lock_release(&change);
}

/* It is runnable and in no queue, as far as it shows. */
static void expect_popped(const struct thrum_unit *unit) {
    const struct worker *worker = worker_here();
    if (worker != NULL && worker->current == unit)
        misuse_end("thrum_pool_push: the thread is the caller");
    if (load_acquire(&unit->join) == JOIN_ENDED) /* pairs with unit_publish_end */
        misuse_end("thrum_pool_push: the thread has ended");
    if (awaits_kind(load_relaxed(&unit->awaits)) != AWAITS_NOTHING)
        misuse_end("thrum_pool_push: the thread waits, and was not popped from a pool");
}

/* The thread is of this pool from here on. */
void thrum_pool_push(thrum_pool_t pool, thrum_t thread) {
    if (is_null(pool) || is_null(thread))
        misuse_null(__func__);
    if (runtime_has_ended())
        misuse_end("thrum_pool_push: the thread's runtime ended with thrum_fini()");
    enter();
    if (MISUSE_IS_WATCHED)
        expect_popped(thread);
    unit_set_pool(thread, pool);
    pool_push(pool, thread);
    leave();
}

void migrate_fork_child(void) {
    lock_reset(&change);
}

void unit_move(struct worker *worker, struct thrum_unit *self) {
    struct thrum_unit *next = pick(worker);
    unit_announce(self);
    unit_wake_elsewhere(NULL, self);
    switch_as(worker, self, next != NULL ? next : worker->loop, THRUM_TRACE_MOVE);
}

/* Moves to its new place; from within a region of its own when it next gives up the worker. */
INSIDE static void move_now(struct worker *worker, struct thrum_unit *self) {
    if (!is_in_region())
        unit_move(worker, self);
}

int thrum_migrate(thrum_t unit, unsigned id) {
    int error = handle_check(unit);
    if (error != 0)
        return error;
    struct worker *worker = enter(), *to = NULL;
    bool is_self = worker != NULL && unit == worker->current;
    if (id != THRUM_ANY_WORKER && (to = bind_worker(id)) == NULL)
        error = EINVAL;
    if (error == 0 && (error = move(unit, is_self, to, NULL)) != 0 && to != NULL)
        worker_unbind(to);
    if (error == 0)
        trace_migrate(worker, unit, to != NULL ? id : TRACE_ANYWHERE);
    if (error == 0 && to != NULL && is_self && to != worker)
        move_now(worker, unit);
    leave();
    return error;
}

int thrum_migrate_to_pool(thrum_t unit, thrum_pool_t pool) {
    int error = pool == NULL ? EINVAL : handle_check(unit);
    if (error != 0)
        return error;
    struct worker *worker = enter();
    bool is_self = worker != NULL && unit == worker->current;
    error = move(unit, is_self, NULL, pool);
    if (error == 0)
        trace_migrate(worker, unit, TRACE_POOL);
    if (error == 0 && is_self)
        move_now(worker, unit);
    leave();
    return error;
}
