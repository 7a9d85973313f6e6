// SPDX-License-Identifier: Apache-2.0
/* See sched/upward.h. */
#include "sched/upward.h"

#include <errno.h>
#include <stddef.h>

#include "preempt/donors.h"
#include "preempt/preempt.h"
#include "sched/worker.h"

bool own_is_possible, own_is_default;

/* The thread's function as its thread begins. What it calls finds the thread's own thread-locals. */
static void *run(void *arg) {
    struct private_donor *donor = arg;
    struct worker *worker = enter();
    struct thrum_unit *self = worker->current;
    self->tcb = donor->tcb;
    self->extras = true; /* it must come to own_end() */
    install_tcb(worker, self);
    self->fn = donor->fn; /* as src/inspect knows it from here on */
    fetch_add_relaxed(&preempt.owners, 1U);
    leave();
    return donor->fn(donor->arg);
}

void *(*own_function(const struct thrum_unit *unit))(void *) {
    return unit->fn == run ? ((const struct private_donor *)unit->arg)->fn : unit->fn;
}

/* While it runs only these and the primary have a block. */
void *own_argument(const struct thrum_unit *self) {
    bool is_own = self->tcb != NULL && !self->is_primary;
    return is_own ? ((const struct private_donor *)self->arg)->arg : self->arg;
}

int own_make(void *(**fn)(void *), void **arg) {
    struct private_donor *donor = donors_make_private();
    if (donor == NULL)
        return EAGAIN;
    donor->fn = *fn;
    donor->arg = *arg;
    *fn = run;
    *arg = donor;
    return 0;
}

void own_unmake(void *arg) {
    struct private_donor *donor = arg;
    donors_end_private(donor->tcb);
}

/* In a child of fork it belongs to the caller alone, and to no donor any more, even if the child has begun a runtime. */
static bool is_on_worker(const struct thrum_unit *self) {
    const struct worker *worker = enter();
    const bool is = worker != NULL && worker->current == self;
    leave();
    return is;
}

/* A donor runs the destructors of thread-locals itself, once it ends. */
void own_end(struct thrum_unit *self) {
    if (!is_on_worker(self))
        return;
    struct tcb *own = self->tcb;
    if (donors_are_blocks())
        donors_renew(own);
    struct worker *worker = enter();
    restore_tcb(worker);
    self->tcb = NULL;
    fetch_sub_relaxed(&preempt.owners, 1U);
    leave();
    donors_end_private(own);
}
