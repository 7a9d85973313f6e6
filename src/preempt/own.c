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

/* --- a worker's -------------------------------------------------------------------------------------- */

/* Blocks that are as new, so that threads which follow each other take no lock for them. */
enum { AS_NEW_MOST = 32 };

static struct private_donor *take_as_new(void) {
    struct worker *worker = enter();
    struct tcb *tcb = worker != NULL ? worker->as_new.first : NULL;
    if (tcb != NULL) {
        worker->as_new.first = tcb->next;
        worker->as_new.count--;
        tcb->next = tcb;
    }
    leave();
    return tcb != NULL ? donors_private_of(tcb) : NULL;
}

/* Inside. False: it has enough of them. */
static bool put_as_new(struct worker *worker, struct tcb *tcb) {
    if (worker->as_new.count >= AS_NEW_MOST)
        return false;
    tcb->next = worker->as_new.first;
    worker->as_new.first = tcb;
    worker->as_new.count++;
    return true;
}

void own_worker_ends(struct worker *worker) {
    struct tcb *tcb = worker->as_new.first;
    worker->as_new.first = NULL;
    worker->as_new.count = 0;
    for (struct tcb *next; tcb != NULL; tcb = next) {
        next = tcb->next;
        donors_end_private(tcb);
    }
}

/* --- for spawns ---------------------------------------------------------------------------------------- */

int own_make(void *(**fn)(void *), void **arg) {
    struct private_donor *donor = take_as_new();
    if (donor == NULL && (donor = donors_make_private()) == NULL)
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

/* False in a child of fork: there its block is the caller's alone, and no spare, even if the child has begun a runtime. */
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
    const bool is_put = donors_are_blocks() && put_as_new(worker, own);
    leave();
    if (!is_put)
        donors_end_private(own);
}
