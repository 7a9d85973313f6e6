// SPDX-License-Identifier: Apache-2.0
/* Mode own-tls: a thread with a block for life (sched/upward.h), which it keeps when it is preempted (mode.h). */
#include "sched/upward.h"

#include <errno.h>
#include <stddef.h>

#include "preempt/mode.h"
#include "preempt/preempt.h"
#include "preempt/requests.h"
#include "preempt/spares.h"
#include "sched/front.h"
#include "sched/worker.h"

bool own_is_possible, own_is_default;

/* As in lend.c: while no thread had a block for life no spare was kept back for one. Before ticks are armed none is lent. */
INSIDE static void note_debt(struct worker *worker) {
    if (__builtin_expect(spares_are_short() && preempt_is_armed(), 0)) {
        worker->owes = true;
        worker->until_slow = 1;
        provider_ask(); /* until then the worker's new threads are queued */
    }
}

INSIDE static void begin(struct worker *worker, struct thrum_unit *self, const struct own_block *block) {
    self->tcb = block->tcb;
    self->extras = true; /* it must come to own_renew() */
    install_units_tcb(worker, self);
    fetch_add_relaxed(&preempt.owners, 1U);
    note_debt(worker);
}

/* The thread's function as its thread begins. What it calls finds the thread's own thread-locals. */
static void *run(void *arg) {
    struct own_block *block = arg;
    struct worker *worker = enter();
    struct thrum_unit *self = worker->current;
    begin(worker, self, block);
    self->fn = block->fn; /* as src/inspect knows it from here on */
    leave();
    return block->fn(block->arg);
}

/* The same of one that begins with its block installed. */
static void *run_begun(void *arg) {
    const struct own_block *block = arg;
    block->owner->fn = block->fn;
    return block->fn(block->arg);
}

void own_begin(struct worker *worker, struct thrum_unit *child) {
    struct own_block *block = child->arg;
    block->owner = child;
    child->fn = run_begun;
    begin(worker, child, block);
}

void *(*own_function(const struct thrum_unit *unit))(void *) {
    if (unit->fn == run || unit->fn == run_begun)
        return ((const struct own_block *)unit->arg)->fn;
    if (unit->fn != NULL && unit->fn == front_shape.entry) /* of a front end's thread */
        return *(void *(*const *)(void *))((const char *)unit->arg + front_shape.function);
    return unit->fn;
}

/* While it runs only these and the primary have a block. */
void *own_argument(const struct thrum_unit *self) {
    bool is_own = self->tcb != NULL && !self->is_primary;
    return is_own ? ((const struct own_block *)self->arg)->arg : self->arg;
}

/* --- a worker's -------------------------------------------------------------------------------------- */

/* Blocks that are as new, so that threads which follow each other take no lock for them. */
enum { AS_NEW_MOST = 32 };

INSIDE static struct own_block *take_as_new(struct worker *worker) {
    struct own_block *block = worker != NULL ? worker->as_new.first : NULL;
    if (block != NULL) {
        worker->as_new.first = block->next;
        worker->as_new.count--;
    }
    return block;
}

/* False: it has enough of them. */
INSIDE static bool put_as_new(struct worker *worker, struct own_block *block) {
    if (worker->as_new.count >= AS_NEW_MOST)
        return false;
    block->next = worker->as_new.first;
    worker->as_new.first = block;
    worker->as_new.count++;
    return true;
}

void own_worker_ends(struct worker *worker) {
    struct own_block *block = worker->as_new.first;
    worker->as_new.first = NULL;
    worker->as_new.count = 0;
    for (struct own_block *next; block != NULL; block = next) {
        next = block->next;
        spares_end_own(block->tcb);
    }
}

void own_prepare(struct worker *worker) {
    struct own_block *block = own_is_default && spares_recycle_own() ? spares_make_own() : NULL;
    if (block == NULL)
        return;
    enter();
    put_as_new(worker, block);
    leave();
}

/* --- for spawns ---------------------------------------------------------------------------------------- */

static void set_function(struct own_block *block, void *(**fn)(void *), void **arg) {
    block->fn = *fn;
    block->arg = *arg;
    *fn = run;
    *arg = block;
}

bool own_take(struct worker *worker, void *(**fn)(void *), void **arg) {
    struct own_block *block = take_as_new(worker);
    if (block == NULL)
        return false;
    set_function(block, fn, arg);
    return true;
}

int own_make(void *(**fn)(void *), void **arg) {
    const bool is_taken = own_take(enter(), fn, arg);
    leave();
    if (is_taken)
        return 0;
    struct own_block *block = spares_make_own();
    if (block == NULL)
        return EAGAIN;
    set_function(block, fn, arg);
    return 0;
}

void own_unmake(void *arg) {
    struct own_block *block = arg;
    spares_end_own(block->tcb);
}

/* False in a child of fork: there its block is the caller's alone, and no spare, even if the child has begun a runtime. */
static bool is_on_worker(const struct thrum_unit *self) {
    const struct worker *worker = enter();
    const bool is = worker != NULL && worker->current == self;
    leave();
    return is;
}

/* A donor runs the destructors of thread-locals itself, once it ends (donors.c). */
struct own_block *own_renew(const struct thrum_unit *self) {
    return is_on_worker(self) ? spares_renew_own(self->tcb) : NULL;
}

INSIDE static void give_up(struct thrum_unit *self) {
    self->tcb = NULL;
    fetch_sub_relaxed(&preempt.owners, 1U);
}

void own_leave(struct worker *worker, struct thrum_unit *self, struct own_block *as_new) {
    struct tcb *own = self->tcb;
    install_workers_tcb(worker);
    give_up(self);
    if (as_new == NULL || !put_as_new(worker, as_new))
        spares_end_own(own);
}

/* Only this worker takes it from its list, and it does not before it has left it. */
bool own_stay(struct worker *worker, struct thrum_unit *self, struct own_block *as_new) {
    if (as_new == NULL || !put_as_new(worker, as_new))
        return false;
    give_up(self);
    return true;
}

/* --- preempted ----------------------------------------------------------------------------------------- */

const struct preempt_mode mode_own_tls = {
    .choose_next = lend_choose_next,
    .change = mode_change_here,
    .moves = true,
};
