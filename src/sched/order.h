// SPDX-License-Identifier: Apache-2.0
/* Who goes before whom, so that priorities act at once: a unit that becomes ready interrupts a worker that runs one which comes
 * later in the order of that worker's scheduler, as far as that order is known. */
#ifndef THRUM_SCHED_ORDER_H
#define THRUM_SCHED_ORDER_H

#include "sched/unit.h"
#include "thrum/pool.h"

/* Nobody will look at once. If a worker that looks there runs something that comes later than one of this priority in this
 * pool, it is interrupted: of several, that which runs what comes last. Inside. */
void order_interrupt_for(const struct thrum_pool *pool, unsigned priority);
/* The worker is about to run `chosen`, which comes first in the order of its scheduler: is it to be interrupted, for what came
 * meanwhile? Inside. */
void order_look_back(struct worker *worker, struct thrum_unit *chosen);
/* Somebody is at that, and may read units that have ended since: nothing in which there have been any is unmapped now. */
bool order_units_are_read(void);

void order_fork_child(void);

#endif
