// SPDX-License-Identifier: Apache-2.0
/* Thread control blocks (arch_tcb.h) as things that units keep and workers change.
 *
 * Where threads are preempted with their thread-locals (mode LEND), a worker does not run on its kernel thread's own
 * block, but on one that a donor, a kernel thread that sleeps, has lent (preempt/donors.h). All units that have none of
 * their own run on their worker's. One that is preempted takes it along, and the worker goes on with another; the unit that
 * the thread that called thrum_init goes on as has its own for life, and the worker's lies idle while it runs. Whoever leaves a unit that has a block of its
 * own installs the worker's before it, and its own again when it is gone on with: so nobody who switches to it needs to
 * know.
 *
 * Invariants. A block is at any moment: installed on one kernel thread, or a worker's while a unit with its own runs
 * there, or kept by one unit that does not run, or a worker's reserve, or in the list of spares. Each has its own
 * thrum_worker and thrum_nopreempt; who installs a block writes both first.
 *
 * Modelled in tests/model/lend.pml, tcb_install in defer.pml. */
#ifndef THRUM_SCHED_TCB_H
#define THRUM_SCHED_TCB_H

#include <stdbool.h>
#include <stdint.h>

#include "arch_tcb.h"
#include "base/atomic.h"
#include "sched/current.h"

struct thrum_unit;
struct worker;

/* What libstdc++ and libc++abi keep per thread control block about exceptions in flight: the Itanium C++ ABI's
 * __cxa_eh_globals. It belongs to the unit. */
struct exception_globals {
    void *caught;
    unsigned uncaught;
};

struct tcb {
    uintptr_t base;
    struct exception_globals *exceptions; /* there, or `none` if the program has no C++ */
    struct exception_globals none;
    struct tcb *next; /* in the list of spares; itself: somebody has it */
};

/* r/o */
extern bool tcb_is_cheap;

/* Whom the worker, which is short of a block in reserve, runs instead of `unit`: that one, or, if it has none still and
 * `unit` would need it if it were preempted, another, while that is put back; NULL: nobody. Inside. Defined by
 * src/preempt/lend.c. */
struct thrum_unit *tcb_instead(struct worker *worker, struct thrum_unit *unit);

/* The primary, which has its block for life, goes on on this worker, or leaves it. Inside. Defined by src/preempt/primary.c. */
void primary_comes(struct worker *worker);
void primary_leaves(struct worker *worker);

/* What a worker takes for its exceptions while its unit has a block of its own: it says that some are in flight, so that
 * the switch is a slow one (worker.h). Nobody writes to it. */
extern struct exception_globals tcb_own_exceptions;

/* Inside, which stays so: the count goes with the caller. A tick that comes meanwhile is pending on the one block or the
 * other, and so on the new one in the end. */
static inline void tcb_install(struct worker *worker, const struct tcb *tcb) {
    uint32_t *before = ARCH_TCB_WORD(arch_tcb(), thrum_nopreempt);
    uint32_t *now = ARCH_TCB_WORD(tcb->base, thrum_nopreempt);
    store_relaxed(ARCH_TCB_WORD(tcb->base, thrum_worker), worker);
    store_relaxed(now, load_relaxed(before));
    arch_tcb_install(tcb->base, tcb_is_cheap);
    if (!(load_relaxed(before) & NOPREEMPT_NOT_PENDING))
        store_relaxed(now, load_relaxed(now) & ~NOPREEMPT_NOT_PENDING);
    store_relaxed(before, load_relaxed(before) | NOPREEMPT_NOT_PENDING);
}

#endif
