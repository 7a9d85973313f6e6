// SPDX-License-Identifier: Apache-2.0
/* Which unit precedes which, so that priorities act at once: a unit that becomes runnable interrupts a worker that
 * runs a unit which comes later in the order of that worker's scheduler, as far as that order is known. */
#ifndef THRUM_SCHED_POOL_ORDER_H
#define THRUM_SCHED_POOL_ORDER_H

#include "base/inside.h"
#include "sched/unit.h"
#include "thrum/pool.h"

/* No worker will look at once. If a worker that serves this pool runs a unit that comes after one of this priority in
 * this pool, it is interrupted: of several, the one whose unit comes last. */
INSIDE void order_interrupt_for(const struct thrum_pool *pool, unsigned priority);
/* The worker is about to run `chosen`, which comes first in the order of its scheduler: must it be interrupted, for
 * units that came meanwhile? */
INSIDE void order_look_back(struct worker *worker, struct thrum_unit *chosen);
/* A thread is reading, and may read units that have ended since: memory that has held units is not unmapped now. */
bool order_units_are_read(void);

void order_fork_child(void);

#endif
