// SPDX-License-Identifier: Apache-2.0
/* A unit that runs gives way to another: whether, to which, and how. At a tick (handler.c), in the handler or when a region
 * ends; or at a safepoint of its own. What it keeps is its mode's (mode.h). */
#ifndef THRUM_PREEMPT_GIVE_WAY_H
#define THRUM_PREEMPT_GIVE_WAY_H

#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

#include "base/inside.h"
#include "os/signals.h"
#include "preempt/preempt.h"
#include "sched/worker.h"

/* That it was created with, or the runtime's. */
static inline enum thrum_preempt_mode preempt_mode_of(const struct thrum_unit *unit) {
    return unit->preempt != THRUM_PREEMPT_DEFAULT ? (enum thrum_preempt_mode)unit->preempt
                                                  : preempt.settings.mode;
}

/* In system(), which blocks a signal more than the worker (runtime/children.c). */
static inline sigbits preempt_own_block(const struct thrum_unit *unit) {
    return unit->blocks_sigchld ? signals_bit(SIGCHLD) : 0;
}

/* At a tick: the unit for which the present one is preempted, which the caller must then run; NULL: it continues. */
INSIDE struct thrum_unit *preempt_pick_successor(struct worker *worker);

/* `self` is the present unit, which resumes when this returns; `context`: in the handler, that of its frame, else
 * NULL. False: it was not preempted, because there is no block or kernel thread for the unit that would run in its
 * place, or preemption closes. */
INSIDE bool preempt_for(struct worker *worker, struct thrum_unit *self, struct thrum_unit *next,
                        ucontext_t *context);

#endif
