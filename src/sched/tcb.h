// SPDX-License-Identifier: Apache-2.0
/* Thread control blocks (arch_tcb.h) as things that units keep and workers change.
 *
 * Where threads are preempted with their thread-locals (mode LEND), a worker does not run on its kernel thread's own
 * block, but on a spare one (preempt/spares.h). All units that have no block of their own run on their worker's. A
 * preempted unit keeps it, and the worker continues with another one. The primary has its own block for life, and the
 * worker's is unused while it runs. A worker that leaves a unit with its own block installs the worker's before it, and
 * the unit's again when it is resumed: so a thread that switches to it does not need to know. Two do know, and leave the
 * worker's out: a call of a child with its own (call_own), and the return from it (own_stay). When a preempted unit has resumed,
 * its block is the worker's again, and the worker's former one is spare.
 *
 * Invariants. A block is at any time: installed on one kernel thread, or a worker's while a unit with its own runs
 * there, or kept by one unit that does not run, or a worker's reserve, or in the list of spares. (In that of a worker's blocks that are as
 * new it may still be installed there, inside.) Each has its own
 * thrum_worker and thrum_nopreempt; the thread that installs a block writes both first.
 *
 * Modelled in tests/model/lend.pml, tcb_install in defer.pml. */
#ifndef THRUM_SCHED_TCB_H
#define THRUM_SCHED_TCB_H

#include <stdbool.h>
#include <stdint.h>

#include "arch_tcb.h"
#include "base/atomic.h"
#include "base/inside.h"
#include "sched/current.h"
#include "sched/upward.h"

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
    struct tcb *next; /* in the list of spares; itself: in use */
};

/* r/o */
extern bool tcb_is_cheap;

/* What a worker takes for its exceptions while its unit has a block of its own. It says that some are in flight, so
 * that the switch is a slow one (worker.h). No thread writes to it. */
extern struct exception_globals tcb_unit_has_one;

/* Inside, which stays so: the count goes with the caller. A tick that comes meanwhile is pending on one of the two
 * blocks, and so on the new one in the end. */
INSIDE static inline void tcb_install(struct worker *worker, const struct tcb *tcb) {
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
