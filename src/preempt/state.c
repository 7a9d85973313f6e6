// SPDX-License-Identifier: Apache-2.0
/* How this runtime preempts (struct preempt, preempt.h), and questions about that. Data alone, so that what asks depends on
 * nothing else. */
#include "preempt/preempt.h"
#include "sched/worker.h"

struct preempt preempt;
struct preempt_counts preempt_counts;
__thread uint32_t preempt_dropped;

bool preempt_lends(enum thrum_preempt_mode mode) {
    return mode == THRUM_PREEMPT_LEND || mode == THRUM_PREEMPT_OWN_TLS;
}

bool preempt_carries(enum thrum_preempt_mode mode) {
    return mode == THRUM_PREEMPT_KLT;
}

uint32_t preempt_owners_at_once(void) {
    uint32_t owners = load_relaxed(&preempt.owners), workers = load_acquire(&runtime.count);
    return owners < workers ? owners : workers;
}
