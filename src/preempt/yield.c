// SPDX-License-Identifier: Apache-2.0
/* Mode yield: a preempted unit keeps nothing but its stack (mode.h). It may resume with another thread control block, so with
 * other thread-locals. What is done here is part of the other modes, too. */
#include <stddef.h>

#include "os/signals.h"
#include "preempt/give_way.h"
#include "preempt/mode.h"
#include "preempt/own_stack.h"
#include "preempt/preempt.h"
#include "sched/worker.h"

void mode_put_back(struct worker *worker, struct thrum_unit *self, enum unit_kind place) {
    enum { BY_ITSELF = 4 };
    bool to_all = load_relaxed(&worker->counters.preemptions) % BY_ITSELF == 0;
    unit_requeue(worker, self, place, to_all);
}

/* In the handler: the signal is blocked, and the rest may be the mask of a call that is over. */
static void let_signal_in(const struct worker *worker, const ucontext_t *context) {
    signals_mask_set(worker->current->blocks_sigchld ? worker->tick.thread.mask : frame_mask(context));
}

static void keep_signal_out(void) {
    signals_block(signals_bit(preempt.settings.signal));
}

void mode_change_here(struct worker *worker, struct thrum_unit *self, enum unit_kind place,
                      struct thrum_unit *next, struct tcb *spare, const ucontext_t *context) {
    (void)spare;
    if (context != NULL)
        let_signal_in(worker, context);
    unit_announce(self);
    mode_put_back(worker, self, place);
    switch_as(worker, self, next, THRUM_TRACE_PREEMPT);
    if (context != NULL)
        keep_signal_out();
}

const struct preempt_mode mode_yield = {.change = mode_change_here, .moves = true};
