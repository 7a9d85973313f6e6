// SPDX-License-Identifier: Apache-2.0
/* Tasklets and schedulers run on a stack that others need: they must not wait. Functions that may wait ask here
 * first, and return EPERM, or end the process with one line if they return no error. */
#ifndef THRUM_SCHED_MAY_WAIT_H
#define THRUM_SCHED_MAY_WAIT_H

#include <stdbool.h>

#include "sched/unit.h"

static inline bool unit_may_wait(const struct thrum_unit *self) {
    return self->kind != UNIT_TASKLET && self->kind != UNIT_LOOP;
}

/* May the caller wait? */
bool unit_here_may_wait(void);

/* `kind`: what it would have to wait for, which identifies the public function that was called. */
__attribute__((cold)) _Noreturn void unit_cannot_wait(enum awaits kind);

static inline void unit_expect_may_wait(const struct thrum_unit *self, enum awaits kind) {
    if (__builtin_expect(!unit_may_wait(self), 0))
        unit_cannot_wait(kind);
}

/* In a region of the program's (thrum_nopreempt_begin) no thread waits or ends, in any build: the count of these is the kernel
 * thread's, and the next thread there would have it. */
__attribute__((cold)) _Noreturn void unit_waits_in_region(enum awaits kind);
__attribute__((cold)) _Noreturn void unit_ends_in_region(void);

#endif
