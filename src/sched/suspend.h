// SPDX-License-Identifier: Apache-2.0
/* A suspended unit resumes in the place of another: thrum_switch_to, and thrum_exit_to (end.c). */
#ifndef THRUM_SCHED_SUSPEND_H
#define THRUM_SCHED_SUSPEND_H

#include <stdbool.h>

#include "base/inside.h"

struct thrum_unit;
struct worker;

/* `unit` has been taken (unit_take_suspended). True: the worker's unit `self` may switch to it, which the caller must
 * do. False: it belongs elsewhere, and has been woken there. */
INSIDE bool unit_follow(struct worker *worker, const struct thrum_unit *self, struct thrum_unit *unit);

#endif
