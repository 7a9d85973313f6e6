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

static bool give_up(struct patience *patience) {
    struct wait *wait = container_of(patience, struct claim_wait, patience)->wait;
    uint32_t waiting = WAIT_WAITING;
    return cas_acq_rel(&wait->claim, &waiting, WAIT_TIMED_OUT);
}

bool unit_block_until(struct worker *worker, struct wait *wait, uint64_t deadline) {
    if (deadline == TIMER_NEVER) {
        unit_block(worker, wait->unit);
        return true;
    }
    struct claim_wait claim = {.patience = {.unit = wait->unit, .give_up = give_up}, .wait = wait};
    claim.patience.timer.deadline = deadline;
    unit_block_patiently(worker, &claim.patience);
    return load_relaxed(&wait->claim) != WAIT_TIMED_OUT;
}
