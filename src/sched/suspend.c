// SPDX-License-Identifier: Apache-2.0
/* Waiting without an object: suspend, resume, and going straight to a thread that is suspended.
 *
 * `permit` of a unit:
 *   PERMIT_NONE       -> SUSPENDED (itself, about to wait), GIVEN (resume came first)
 *   PERMIT_GIVEN      -> NONE (itself: it does not wait)
 *   PERMIT_SUSPENDED  -> NONE (who resumes it, and then wakes it)
 * A descriptor with `extras` gets PERMIT_NONE again when it is used for another thread.
 *
 * So a resume that comes before the suspend is not lost, and two before it count as one. */
#include <errno.h>

#include "sched/worker.h"
#include "thrum/thrum.h"

enum { PERMIT_NONE, PERMIT_GIVEN, PERMIT_SUSPENDED };

int thrum_suspend(void) {
    struct worker *worker = enter();
    if (worker == NULL || worker->current->kind == UNIT_TASKLET) {
        leave();
        return EPERM;
    }
    struct thrum_unit *self = worker->current;
    uint32_t permit = PERMIT_NONE;
    self->escaped = self->extras = true; /* who resumes it has its handle */
    unit_announce(self);
    if (cas_acq_rel(&self->permit, &permit, PERMIT_SUSPENDED))
        unit_block(worker, self);
    else
        store_relaxed(&self->permit, PERMIT_NONE);
    leave();
    return 0;
}

/* True: it was suspended and is the caller's to run. */
static bool take(struct thrum_unit *unit) {
    uint32_t permit = load_relaxed(&unit->permit);
    for (;;) {
        if (permit == PERMIT_GIVEN)
            return false;
        store_relaxed(&unit->extras, true);
        uint32_t next = permit == PERMIT_SUSPENDED ? PERMIT_NONE : PERMIT_GIVEN;
        if (cas_acq_rel(&unit->permit, &permit, next))
            return next == PERMIT_NONE;
    }
}

void thrum_resume(thrum_t unit) {
    struct worker *worker = enter();
    if (take(unit))
        unit_wake(worker, unit);
    leave();
}

void thrum_switch_to(thrum_t unit) {
    struct worker *worker = enter();
    if (take(unit)) {
        struct thrum_unit *self = worker != NULL ? worker->current : NULL;
        if (self == NULL || self->kind != UNIT_ULT || unit->kind != UNIT_ULT || worker->obeys) {
            unit_wake(worker, unit);
        } else {
            unit_announce(self);
            if (!yield_ring_push(&worker->yields, self))
                run_queue_overflow(self);
            idle_wake_check(&scheduler.idle);
            switch_to(worker, self, unit);
        }
    }
    leave();
}
