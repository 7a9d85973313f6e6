// SPDX-License-Identifier: Apache-2.0
/* Carriers: kernel threads that run workers, one after another (mode KLT). What moves workers is preempt/carrier.c
 * (upward.h).
 *
 * Where threads are preempted with their kernel threads, a worker is not tied to one kernel thread, but moves from
 * one to another. A preempted unit keeps the kernel thread under it, and the worker continues on another one. A
 * worker that resumes the unit moves to the unit's kernel thread. The primary (the unit of the thread that called
 * thrum_init) keeps its own kernel thread for life: a worker that leaves it moves elsewhere, each time.
 *
 * A carrier is in one of four states:
 *
 *   at rest      on its own stack, waiting for an order; a spare (spares.h), or a worker's reserve
 *   with a worker
 *   kept         it waits for an order on the stack of the unit that keeps it; this was the unit's last act
 *   ended
 *
 * One order at a time. The sender has taken the carrier from the spares, or from the reserve of its own worker, or it
 * has taken the unit that keeps the carrier from its queue; so there is no other sender. A worker belongs to one
 * carrier at any time: to the one it was sent to, from the moment at which `order` is written. The previous carrier
 * touches nothing of the worker from then on.
 *
 * A unit that keeps a carrier says so by its sp, UNIT_KEPT, before it is published. A worker that picks it comes to
 * unit_make_frame, which leaves it to the loop. The worker switches to the loop, and the carrier under it returns to
 * its own stack to send the worker on. A preempting handler sends the worker directly.
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
#include "sched/upward.h"

struct carrier {
    struct tcb tcb;        /* first: its own */
    uint32_t order;        /* futex, enum carrier_order */
    struct worker *worker; /* of the order */
    int32_t tid;           /* r/o, as the next */
    struct alarm alarm;
    sigbits mask, other; /* signals that it blocks, and while it carries no worker the same of struct tick */
    uint32_t seen;       /* likewise */
    uint64_t slack;      /* likewise */
    char *stack;         /* alternate; NULL: it had one */
    uint32_t is_sent;    /* the sender of a worker is about to set its timer, or has */
    bool is_stopped;     /* ... which it may have stopped since; its own */
    uint32_t place; /* the worker whose CPUs it was given: 1 + its number; 0: none. Written by itself only */
    struct thrum_unit idle; /* what it returns to when it carries no worker any more */
};

/* r/o while there are workers */
extern bool carriers_are_used;

#endif
