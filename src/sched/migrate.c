// SPDX-License-Identifier: Apache-2.0
/* Moving threads: to a worker, to a pool, or to wherever there is room.
 *
 * Where a unit goes when it can run is said by `kind`, `bound` and `pool`, which whoever wakes it reads. Anybody may give
 * it a place: `bound` or `pool` is written before the `kind` that says it counts. Who read the old kind puts it where it
 * was; the next time it goes where it is to. Only itself, while it runs, can leave the worker that it is bound to, since
 * that must stay for those who are about to wake it there. */
#include <errno.h>

#include "sched/worker.h"
#include "thrum/pool.h"

bool unit_bind(struct thrum_unit *unit, uint32_t id) {
    if (id >= load_acquire(&scheduler.count))
        return false;
    struct worker *worker = scheduler.workers[id], *nobody = NULL;
    if (!worker_bind(worker))
        return false;
    if (!cas_acq_rel(&unit->bound, &nobody, worker)) {
        worker_unbind(worker);
        return false;
    }
    store_release(&unit->kind, (uint8_t)UNIT_BOUND);
    return true;
}

/* The caller's own. */
static void unbind(struct thrum_unit *self) {
    struct worker *bound = self->bound;
    store_relaxed(&self->kind, (uint8_t)UNIT_ULT);
    store_release(&self->bound, NULL);
    worker_unbind(bound);
}

/* It goes to where it belongs from now on. */
static void move_now(struct worker *worker, struct thrum_unit *self) {
    struct thrum_unit *next = pick(worker);
    unit_announce(self);
    unit_wake_elsewhere(self);
    switch_to(worker, self, next != NULL ? next : worker->loop);
}

/* 0, or why it cannot be moved. */
static int leave_old_place(struct worker *worker, struct thrum_unit *unit) {
    bool is_self = worker != NULL && unit == worker->current;
    switch (load_acquire(&unit->kind)) {
    case UNIT_ULT:
    case UNIT_POOLED: return 0;
    case UNIT_BOUND:
        if (unit->is_primary)
            return EPERM;
        if (!is_self)
            return EBUSY;
        unbind(unit);
        return 0;
    default: return EPERM;
    }
}

int thrum_migrate(thrum_t unit, unsigned to) {
    struct worker *worker = enter();
    int error = leave_old_place(worker, unit);
    if (error == 0 && to == THRUM_ANY_WORKER)
        store_release(&unit->kind, (uint8_t)UNIT_ULT);
    else if (error == 0 && !unit_bind(unit, to))
        error = EINVAL;
    else if (error == 0 && worker != NULL && unit == worker->current && unit->bound != worker)
        move_now(worker, unit);
    leave();
    return error;
}

int thrum_migrate_to_pool(thrum_t unit, thrum_pool_t pool) {
    if (pool == NULL)
        return EINVAL;
    struct worker *worker = enter();
    int error = leave_old_place(worker, unit);
    if (error == 0) {
        store_relaxed(&unit->pool, pool);
        store_release(&unit->kind, (uint8_t)UNIT_POOLED);
        if (worker != NULL && unit == worker->current)
            move_now(worker, unit);
    }
    leave();
    return error;
}
