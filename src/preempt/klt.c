// SPDX-License-Identifier: Apache-2.0
/* Mode klt: a preempted unit keeps the kernel thread under it, and its worker continues on another (mode.h, sched/carrier.h). */
#include <stddef.h>

#include "preempt/carrier.h"
#include "preempt/mode.h"
#include "preempt/preempt.h"
#include "sched/worker.h"

static int start(void (*is_over)(struct worker *worker)) {
    carriers_start(is_over);
    return 0;
}

static void fork_child(const struct worker *worker) {
    (void)worker;
    carriers_stop();
}

/* Its kernel thread's own block is no spare. */
static void worker_end(struct worker *worker) {
    worker->tcb = NULL;
}

INSIDE static void change(struct worker *worker, struct thrum_unit *self, enum unit_kind place,
                          struct thrum_unit *next, struct tcb *spare, const ucontext_t *context) {
    (void)context;
    bool is_own = self->tcb != NULL;
    if (!is_own)
        self->tcb = worker->tcb;
    store_relaxed(&self->took_tcb, !is_own);
    store_relaxed(&self->sp, UNIT_KEPT);
    mode_put_back(worker, self, place);
    count_one(&worker->counters.switches);
    carrier_keep(worker, self, next, spare, THRUM_TRACE_PREEMPT);
    store_relaxed(&self->took_tcb, false);
    if (!is_own)
        self->tcb = NULL;
}

const struct preempt_mode mode_klt = {
    .start = start,
    .stop = carriers_stop,
    .fork_child = fork_child,
    .worker_begin = carrier_adopt_primary,
    .worker_end = worker_end,
    .choose_next = lend_choose_next,
    .change = change,
};
