// SPDX-License-Identifier: Apache-2.0
/* See wait.h. */
#include "sched/wait.h"

#include "base/container_of.h"
#include "sched/patience.h"
#include "sched/worker.h"

struct claim_wait {
    struct patience patience;
    struct wait *wait;
};

static bool give_up(struct wait *wait) {
    uint32_t waiting = WAIT_WAITING;
    return cas_acq_rel(&wait->claim, &waiting, WAIT_TIMED_OUT);
}

static bool give_up_claim(struct patience *patience) {
    return give_up(container_of(patience, struct claim_wait, patience)->wait);
}

bool unit_block_until(struct worker *worker, struct wait *wait, uint64_t deadline) {
    if (deadline == TIMER_NEVER) {
        unit_block(worker, wait->unit);
        return true;
    }
    if (deadline <= timer_now() && give_up(wait)) {
        (void)cancel_is_point(wait->unit); /* that was it */
        unit_await_no_more(wait->unit);
        return false;
    }
    struct claim_wait claim = {.patience = {.unit = wait->unit, .give_up = give_up_claim}, .wait = wait};
    claim.patience.timer.deadline = deadline;
    unit_block_patiently(worker, &claim.patience);
    return load_relaxed(&wait->claim) != WAIT_TIMED_OUT;
}
