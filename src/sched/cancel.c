// SPDX-License-Identifier: Apache-2.0
/* See cancel.h. */
#include "sched/cancel.h"

#include "os/backoff.h"
#include "thrum/thrum.h"

bool cancel_watch(struct thrum_unit *self, struct cancel_watch *watch) {
    uintptr_t word = load_relaxed(&self->cancel);
    do {
        if (word & CANCEL_REQUESTED)
            return false;
    } while (!cas_acq_rel(&self->cancel, &word, word | (uintptr_t)watch)); /* pairs with thrum_cancel's cas */
    return true;
}

void cancel_unwatch(struct thrum_unit *self) {
    /* This and the next two pair with thrum_cancel's fetch_and: it has made its last access. */
    uintptr_t word = load_acquire(&self->cancel);
    for (unsigned tries = 0;; tries++) {
        if (!(word & CANCEL_HELD) && cas_acq_rel(&self->cancel, &word, word & CANCEL_FLAGS))
            return;
        if (word & CANCEL_HELD) {
            backoff(tries);
            word = load_acquire(&self->cancel);
        }
    }
}

void cancel_disable(struct thrum_unit *self) {
    fetch_or_acq_rel(&self->cancel, (uintptr_t)CANCEL_DISABLED); /* pairs with thrum_cancel's cas */
}

int thrum_cancel(thrum_t unit) {
    int error = handle_check(unit);
    if (error != 0)
        return error;
    if (!unit->cancellable)
        return ENOTSUP;
    struct worker *worker = enter();
    uintptr_t word = load_relaxed(&unit->cancel), held;
    do {
        if (word & CANCEL_REQUESTED) {
            leave();
            return 0;
        }
        held = word & ~(uintptr_t)CANCEL_FLAGS ? CANCEL_HELD : 0;
        store_relaxed(&unit->extras, true); /* before: afterwards it may have ended, and been joined */
    } while (!cas_acq_rel(&unit->cancel, &word,
                          word | CANCEL_REQUESTED | held)); /* pairs with cancel_watch and is_to_end */
    if (held) {
        struct cancel_watch *watch = (struct cancel_watch *)(word & ~(uintptr_t)CANCEL_FLAGS);
        watch->give_up(worker, watch);
        fetch_and_acq_rel(&unit->cancel, ~(uintptr_t)CANCEL_HELD); /* pairs with cancel_unwatch */
    }
    leave();
    return 0;
}

static bool is_to_end(const struct thrum_unit *self) {
    /* Pairs with thrum_cancel's cas. */
    return self != NULL && self->cancellable &&
           (load_acquire(&self->cancel) & (CANCEL_REQUESTED | CANCEL_DISABLED)) == CANCEL_REQUESTED;
}

static struct thrum_unit *myself(void) {
    struct worker *worker = enter();
    struct thrum_unit *self = worker != NULL ? worker->current : NULL;
    leave();
    return self;
}

void cancel_act_slow(void) {
    if (is_to_end(myself()))
        thrum_exit(THRUM_CANCELED);
}

void cancel_act_of_lock_slow(void) {
    const struct thrum_unit *self = myself();
    if (is_to_end(self) && self->cancels_locks)
        thrum_exit(THRUM_CANCELED);
}

void thrum_testcancel(void) {
    cancel_act_slow();
}

int thrum_set_cancel(int enabled) {
    struct thrum_unit *self = myself();
    if (self == NULL || !self->cancellable)
        return 0;
    store_relaxed(&self->extras, true);
    /* Both pair with thrum_cancel's cas. */
    uintptr_t before = enabled ? fetch_and_acq_rel(&self->cancel, ~(uintptr_t)CANCEL_DISABLED)
                               : fetch_or_acq_rel(&self->cancel, (uintptr_t)CANCEL_DISABLED);
    return !(before & CANCEL_DISABLED);
}
