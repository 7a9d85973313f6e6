// SPDX-License-Identifier: Apache-2.0
/* Carriers: kernel threads that run workers, one after another (mode KLT). Defined by src/preempt/carrier.c.
 *
 * Where threads are preempted with their kernel threads, a worker is not one kernel thread, but goes from one to another.
 * A unit that is preempted keeps the kernel thread under it, and the worker goes on with another; whoever goes on with
 * the unit sends his worker there. The unit that the thread that called thrum_init goes on as keeps its own for life:
 * a worker that leaves it goes elsewhere, each time.
 *
 * A carrier stands in one of four places:
 *
 *   at rest      on its own stack, waiting for an order; a spare (donors.h), or a worker's reserve
 *   with a worker
 *   kept         it waits for an order on the stack of the unit that keeps it, as the last that this unit has done
 *   ended
 *
 * One order at a time: who gives it has taken the carrier from the spares, from the reserve of a worker that is his,
 * or has taken the unit that keeps it from where it waited; so there is no other. A worker is at any moment one
 * carrier's: that which it was sent to, from the moment at which `order` is written. Nothing of it is touched by the
 * one before from there on.
 *
 * A unit that keeps one says so by its sp, UNIT_KEPT, before it is put where others find it. So who means to go on with
 * it comes to unit_make_frame, which leaves it to the loop; that is what is switched away from, and the carrier under it
 * goes back to its own stack to send the worker on. Who preempts sends the worker directly.
 *
 * Modelled in tests/model/carrier.pml. */
#ifndef THRUM_SCHED_CARRIER_H
#define THRUM_SCHED_CARRIER_H

#include <stdbool.h>
#include <stdint.h>

#include "os/alarm.h"
#include "os/signals.h"
#include "sched/tcb.h"
#include "sched/trace.h"
#include "sched/unit.h"

struct carrier {
    struct tcb tcb;        /* first: its own */
    uint32_t order;        /* futex, enum carrier_order */
    struct worker *worker; /* of the order */
    int32_t tid;           /* r/o, as the next */
    struct alarm alarm;
    sigbits mask, other;    /* signals that it blocks, and while it carries nobody the same of struct tick */
    uint32_t seen;          /* likewise */
    uint64_t slack;         /* likewise */
    char *stack;            /* alternate; NULL: it had one */
    uint32_t is_sent;       /* whoever sends it a worker is about to set its timer, or has */
    bool is_stopped;        /* ... which it may have stopped since; its own */
    uint32_t place;         /* whose worker's CPUs it has been given: 1 + its number; 0: nobody's. Its own */
    struct thrum_unit idle; /* what it goes back to when it carries nobody any more */
};

/* r/o while there are workers */
extern bool carriers_are_used;

/* The worker goes on with `next` elsewhere, at once, while `self` keeps the present kernel thread. It has announced itself
 * by UNIT_KEPT, or is the primary. If `next` keeps none, the worker goes on with its reserve, and has `spare`, or none, in
 * the place of that. Returns when somebody goes on with `self`, inside. */
void carrier_keep(struct worker *worker, struct thrum_unit *self, struct thrum_unit *next, struct tcb *spare,
                  enum thrum_trace_kind why);

/* The worker leaves its loop `self` and the present kernel thread for that which `unit` keeps. Returns when the loop is
 * gone on with. Inside. */
void carrier_go_to(struct worker *worker, struct thrum_unit *self, struct thrum_unit *unit);

#endif
