// SPDX-License-Identifier: Apache-2.0
/* Finding a preempted unit. Only a preempted unit can hold a lock of libc's, or of the program's, that another thread
 * waits for in the kernel; and only preempted units can be resumed when thread control blocks are short
 * (preempt/lend.c).
 *
 * No unit is passed over for ever: the first queue is drawn at random, skipped units go to the end of their queue,
 * and in pools, which have an order of their own, one of the preempted units is drawn among those examined. Strict
 * turns would let some never meet, since this is called from several places that take turns themselves. */
#ifndef THRUM_SCHED_PREEMPTED_H
#define THRUM_SCHED_PREEMPTED_H

#include "base/inside.h"

struct thrum_sched;
struct thrum_unit;
struct worker;

/* For `worker`: a preempted unit from where worker `from` would find one, and if that is another worker, also from
 * where it would steal one; NULL: none. `own`: the scheduler whose loop the caller is, which may be stacked, or NULL;
 * then its pools are searched. In pools of the program's kinds, whose functions are called as that scheduler would,
 * this is the first unit, and may not have been preempted. */
INSIDE struct thrum_unit *preempted_take(struct worker *worker, struct worker *from,
                                         const struct thrum_sched *own);

#endif
