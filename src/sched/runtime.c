// SPDX-License-Identifier: Apache-2.0
/* The runtime (worker.h), and what it can do. Data alone, so that what reads it depends on nothing else. */
#include "sched/carrier.h"
#include "sched/trim.h"
#include "sched/worker.h"

struct runtime runtime;

void (*trim_arm)(struct worker *worker);

bool tcb_is_cheap;
bool carriers_are_used;
bool ticks_are_possible;
struct exception_globals tcb_unit_has_one = {.caught = &tcb_unit_has_one};
