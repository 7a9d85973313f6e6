// SPDX-License-Identifier: Apache-2.0
/* See sched/carrier.h: their life. */
#ifndef THRUM_PREEMPT_CARRIER_H
#define THRUM_PREEMPT_CARRIER_H

#include <stdbool.h>

#include "base/inside.h"
#include "sched/carrier.h"

struct worker;

/* Workers run on carriers from here on. is_over(worker) is called when one has ended, on a kernel thread of which
 * nothing is touched afterwards; inside. */
void carriers_start(void (*is_over)(struct worker *worker));
void carriers_stop(void);

/* By the kernel thread that becomes the carrier. False: the system has no timer or no memory for it. */
bool carrier_begin(struct carrier *self);
/* Serves until it must end. False: a unit that keeps it is lost. */
bool carrier_serve(struct carrier *self);
void carrier_finish(struct carrier *self);
/* By another. */
void carrier_end(struct carrier *carrier);

/* The worker has a carrier (its tcb), and `current`, its loop, a frame: it runs. */
void carrier_start_worker(struct worker *worker);
/* By its loop, when that is over. */
INSIDE _Noreturn void carrier_end_worker(struct worker *worker);

/* The caller's kernel thread, which is `worker`, is the carrier that `primary` keeps for life. */
INSIDE void carrier_adopt_primary(struct worker *worker, struct thrum_unit *primary);

#endif
