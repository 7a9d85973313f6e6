// SPDX-License-Identifier: Apache-2.0
/* What a preempted unit keeps, by its mode; and what a runtime needs so that units may keep that. A table of functions for
 * each mode, in a file of its own:
 *
 *   mode_yield    nothing                                            yield.c
 *   mode_lend     its worker's thread control block                  lend.c
 *   mode_own_tls  the block that it has for life                     own.c
 *   mode_klt      the kernel thread under it                         klt.c */
#ifndef THRUM_PREEMPT_MODE_H
#define THRUM_PREEMPT_MODE_H

#include <stdbool.h>
#include <ucontext.h>

#include "base/inside.h"
#include "sched/unit.h"
#include "thrum/preempt.h"
#include "thrum/trace.h"

struct tcb;
struct worker;

/* NULL: nothing to do. All but start, stop and fork_child inside. */
struct preempt_mode {
    /* --- of a runtime's mode ------------------------------------------------------------------------ */

    /* There are spares, and no workers; when there are none any more; in a child of fork, `worker` being its thread's or NULL. */
    int (*start)(void (*is_over)(struct worker *worker));
    void (*stop)(void);
    void (*fork_child)(const struct worker *worker);
    /* The caller's kernel thread becomes the worker, whose home it is; `primary`: what runs on it, or NULL. And at its end. */
    void (*worker_begin)(struct worker *worker, struct thrum_unit *primary);
    void (*worker_end)(struct worker *worker);

    /* --- of a unit's, at its preemption, in this order ---------------------------------------------- */

    /* May the present unit be preempted in favour of `next`? Else returns another unit for which it may be; NULL: none, and
     * `next` is put back. *spare is for take_tcb and change. */
    struct thrum_unit *(*choose_next)(struct worker *worker, struct thrum_unit *next, struct tcb **spare);
    void (*take_tcb)(struct worker *worker, struct thrum_unit *self, struct tcb *spare);
    /* Enqueues `self` at `place`, and runs `next`; returns when `self` resumes. `context`: of the handler's frame, to which it
     * will return; NULL: not in the handler. */
    void (*change)(struct worker *worker, struct thrum_unit *self, enum unit_kind place,
                   struct thrum_unit *next, struct tcb *spare, const ucontext_t *context);
    void (*return_tcb)(struct worker *worker, struct thrum_unit *self);
    /* It may resume on another kernel thread. */
    bool moves;
};

extern const struct preempt_mode mode_yield, mode_lend, mode_own_tls, mode_klt;

/* What `unit` keeps in this runtime. */
SIGSAFE const struct preempt_mode *mode_of(const struct thrum_unit *unit);

/* The runtime's. */
const struct preempt_mode *mode_of_runtime(void);

/* --- for more than one of them ---------------------------------------------------------------------- */

/* Now and then to where all workers look: units that never wait would stay in the queues that they came to, however
 * long these are. */
INSIDE void mode_put_back(struct worker *worker, struct thrum_unit *self, enum unit_kind place);

/* `next` runs on this kernel thread. */
INSIDE void mode_change_here(struct worker *worker, struct thrum_unit *self, enum unit_kind place,
                             struct thrum_unit *next, struct tcb *spare, const ucontext_t *context);

#endif
