// SPDX-License-Identifier: Apache-2.0
/* See sched/carrier.h.
 *
 * A handoff costs what the kernel takes to wake one thread and to put another to sleep. The timer that makes a
 * worker's ticks belongs to a kernel thread: the sender of the worker sets the timer of the receiving one first, and
 * then stops its own. Both expire next at the same time, so the kernel need not program the hardware again, which on
 * a virtual machine takes longer than all the rest. (But a carrier that was only just left may be sent a worker
 * before it has stopped its timer. The sender says so before it sets the timer; the carrier looks after it has
 * stopped it, and sets it again if it takes the worker on.) */
#include "preempt/carrier.h"

#include <stddef.h>
#include <unistd.h>

#include "os/alternate.h"
#include "os/futex.h"
#include "os/signals.h"
#include "preempt/preempt.h"
#include "preempt/spares.h"
#include "sched/pool/order.h"
#include "sched/worker.h"

enum carrier_order { ORDER_NONE, ORDER_CARRY, ORDER_END };

static void (*worker_is_over)(struct worker *worker);

/* Of the thread that called thrum_init. */
static struct carrier primary_carrier;

static struct carrier *carrier_of(struct tcb *tcb) {
    return (struct carrier *)(void *)tcb;
}

static bool is_kept(const struct thrum_unit *unit) {
    return load_relaxed(&unit->sp) == UNIT_KEPT;
}

/* --- orders ------------------------------------------------------------------------------------------- */

static void give_order(struct carrier *carrier, enum carrier_order order) {
    thrum_assert(order != ORDER_CARRY || load_relaxed(&carrier->order) == ORDER_NONE);
    store_release(&carrier->order, order); /* pairs with wait_for_order: what is sent is there */
    futex_wake(&carrier->order, 1);
}

/* An order to end stays. */
static enum carrier_order wait_for_order(struct carrier *self) {
    uint32_t order;
    while ((order = load_acquire(&self->order)) == ORDER_NONE) /* pairs with give_order */
        futex_wait(&self->order, ORDER_NONE);
    if (order == ORDER_CARRY)
        store_relaxed(&self->order, ORDER_NONE);
    return (enum carrier_order)order;
}

void carrier_end(struct carrier *carrier) {
    give_order(carrier, ORDER_END);
}

/* --- a worker comes and goes -------------------------------------------------------------------------- */

/* `self` is the caller's carrier, and has been sent its worker. */
INSIDE static struct worker *take_on(struct carrier *self) {
    struct worker *worker = self->worker;
    thrum_assert(worker != NULL && worker_here() == NULL && self->tid == gettid() &&
                 arch_tcb() == self->tcb.base);
    store_relaxed(&self->is_sent, 0);
    struct tick *tick = &worker->tick;
    worker->tcb = &self->tcb;
    worker->exceptions = self->tcb.exceptions;
    /* Pairs with the monitor's load in send, by the exchanges of `sent`. */
    store_seq_cst(&worker->tid, self->tid);
    store_relaxed(&tick->is_sent, 0);
    tick->thread.mask = self->mask;
    store_relaxed(&tick->thread.other, self->other);
    tick->thread.seen = self->seen;
    tick->thread.slack = self->slack;
    if (preempt.place != NULL && self->place != worker->id + 1) {
        preempt.place(worker->id);
        self->place = worker->id + 1;
    }
    tick->last.changed = timer_now();
    ARCH_TLS_STORE(thrum_worker, worker);
    tick_has_arrived(worker);
    bool dropped = preempt_dropped != 0;
    preempt_dropped = 0;
    if (dropped || self->is_stopped)
        tick_has_moved(worker);
    self->is_stopped = false;
    return worker;
}

static void send(struct worker *worker, struct carrier *to) {
    to->worker = worker;
    store_relaxed(&worker->tick.is_sent, 1);
    give_order(to, ORDER_CARRY);
}

/* The caller's kernel thread `self` no longer carries it. While no carrier rests, no thread sets its timer meanwhile. */
static void let_go(struct carrier *self, const struct worker *worker) {
    self->mask = worker->tick.thread.mask; /* as it was, also in what is recorded of it (handler.c) */
    self->other = load_relaxed(&worker->tick.thread.other);
    self->seen = worker->tick.thread.seen;
    self->slack = worker->tick.thread.slack;
    alarm_set(&self->alarm, 0, 0);
    /* Pairs with send_on, by the kernel's lock of the timer. */
    self->is_stopped = load_seq_cst(&self->is_sent) != 0;
    ARCH_TLS_STORE(thrum_worker, NULL);
}

/* ... but `to`. */
static void send_on(struct carrier *self, struct worker *worker, struct carrier *to) {
    tick_resume(worker);
    store_seq_cst(&to->is_sent, 1); /* pairs with let_go */
    store_relaxed(&worker->tick.thread.alarm.id, to->alarm.id);
    tick_has_moved(worker);
    let_go(self, worker);
    send(worker, to);
}

/* --- keeping ------------------------------------------------------------------------------------------ */

/* Its unit is lost: the runtime ends without it. */
static _Noreturn void abandon(struct carrier *here, struct thrum_unit *self) {
    arch_switch(&self->sp, &here->idle);
    __builtin_unreachable();
}

void carrier_keep(struct worker *worker, struct thrum_unit *self, struct thrum_unit *next, struct tcb *spare,
                  enum thrum_trace_kind why) {
    struct carrier *here = carrier_of(worker->tcb), *there = NULL;
    trace_run(worker, self, why);
    store_relaxed(&self->sp, UNIT_KEPT);
    if (is_kept(next)) {
        there = carrier_of(next->tcb);
    } else {
        thrum_assert(worker->reserve != NULL);
        there = carrier_of(worker->reserve);
        worker->reserve = spare;
    }
    worker->current = next;
    send_on(here, worker, there);
    if (wait_for_order(here) == ORDER_END)
        abandon(here, self);
    worker = take_on(here);
    worker->current = self;
    if (!load_relaxed(&self->took_tcb))
        worker->exceptions = &tcb_unit_has_one;
    trace_run(worker, self, THRUM_TRACE_RESUME);
}

void carrier_go_to(struct worker *worker, struct thrum_unit *self, struct thrum_unit *unit) {
    worker->current = unit;
    if (__builtin_expect(worker->in_order, 0))
        order_look_back(worker, unit); /* what it finds comes along (tick_has_arrived) */
    count_one(&worker->counters.switches);
    arch_switch(&self->sp, &carrier_of(worker->tcb)->idle);
}

/* --- a carrier's own loop ----------------------------------------------------------------------------- */

/* It carries no worker from here on, and may be asked to at once. */
INSIDE static void leave_worker(struct carrier *self, struct worker *worker) {
    if (worker->reserve == NULL)
        worker->reserve = &self->tcb;
    else
        spares_give(&self->tcb);
}

/* The worker has ended; nothing of it is touched after the last call. */
INSIDE static void worker_end(struct carrier *self, struct worker *worker) {
    tick_end_for_good(worker);
    struct tcb *reserve = worker->reserve;
    worker->tcb = worker->reserve = NULL;
    spares_give(&self->tcb);
    if (reserve != NULL)
        spares_give(reserve);
    worker_is_over(worker);
}

/* True: the unit that kept it is lost. Unchecked: it opens and closes its region by the word itself, which a unit that is
 * carried away leaves as it is. */
INSIDE_UNCHECKED static bool carry(struct carrier *self) {
    ARCH_TLS_STORE32(thrum_nopreempt, NOPREEMPT_NOT_PENDING + 1);
    struct worker *worker = take_on(self);
    struct thrum_unit *next = worker->current;
    if (!unit_ready(worker, next))
        worker->current = next = worker->loop;
    arch_switch(&self->idle.sp, next);
    worker = worker_here();
    if (worker == NULL)
        return true; /* abandon() */
    next = worker->current;
    if (next != NULL) {
        struct carrier *to = carrier_of(next->tcb);
        leave_worker(self, worker);
        send_on(self, worker, to);
    } else {
        tick_resume(worker);
        let_go(self, worker);
        worker_end(self, worker);
    }
    ARCH_TLS_STORE32(thrum_nopreempt, NOPREEMPT_NOT_PENDING);
    return false;
}

bool carrier_serve(struct carrier *self) {
    bool lost = false;
    while (wait_for_order(self) == ORDER_CARRY)
        lost = carry(self);
    return !lost;
}

/* --- life --------------------------------------------------------------------------------------------- */

static bool begin(struct carrier *self) {
    sigbits tick = signals_bit(preempt.settings.signal);
    self->tid = gettid();
    if (!tick_source(&self->alarm, self->tid))
        return false;
    self->mask = self->other = signals_mask_get() & ~tick;
    signals_unblock(tick);
    return true;
}

bool carrier_begin(struct carrier *self) {
    if (!alternate_stack_begin(&self->stack))
        return false;
    if (begin(self))
        return true;
    alternate_stack_end(self->stack);
    return false;
}

void carrier_finish(struct carrier *self) {
    signals_block(signals_bit(preempt.settings.signal));
    alarm_delete(&self->alarm);
    alternate_stack_end(self->stack);
}

void carriers_start(void (*is_over)(struct worker *worker)) {
    worker_is_over = is_over;
    carriers_are_used = true;
}

void carriers_stop(void) {
    carriers_are_used = false;
}

void carrier_start_worker(struct worker *worker) {
    store_relaxed(&worker->tick.thread.alarm.id, carrier_of(worker->tcb)->alarm.id);
    store_relaxed(&worker->tick.state, TICK_OFF);
    send(worker, carrier_of(worker->tcb));
}

_Noreturn void carrier_end_worker(struct worker *worker) {
    worker->current = NULL;
    arch_switch(&worker->base.sp, &carrier_of(worker->tcb)->idle);
    __builtin_unreachable();
}

/* Its timer, mask and stack are there already. */
void carrier_adopt_primary(struct worker *worker, struct thrum_unit *primary) {
    struct carrier *self = &primary_carrier;
    *self = (struct carrier){.tcb = worker->home,
                             .tid = worker->tid,
                             .mask = worker->tick.thread.mask,
                             .other = worker->tick.thread.other};
    if (self->tcb.exceptions == &worker->home.none)
        self->tcb.exceptions = &self->tcb.none;
    self->alarm = worker->tick.thread.alarm;
    self->place = worker->id + 1;
    self->idle.kind = UNIT_LOOP;
    spares_give(worker->tcb); /* it would have been carried by this one */
    worker->tcb = primary->tcb = &self->tcb;
    worker->exceptions = &tcb_unit_has_one;
    fetch_add_relaxed(&preempt.owners, 1U);
}
