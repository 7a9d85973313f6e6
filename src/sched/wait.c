// SPDX-License-Identifier: Apache-2.0
/* See wait.h. */
#include "sched/wait.h"

#include "base/container_of.h"
#include "sched/time/timed_wait.h"
#include "sched/worker.h"

struct claim_wait {
    struct timed_wait timed_wait;
    struct wait *wait;
};

static bool give_up(struct timed_wait *timed_wait) {
    struct wait *wait = container_of(timed_wait, struct claim_wait, timed_wait)->wait;
    uint32_t waiting = WAIT_WAITING;
    return cas_acq_rel(&wait->claim, &waiting, WAIT_TIMED_OUT); /* pairs with wait_claim */
}

bool unit_block_until(struct worker *worker, struct wait *wait, uint64_t deadline) {
    if (deadline == TIMER_NEVER) {
        unit_block(worker, wait->unit);
        return true;
    }
    struct claim_wait claim = {.timed_wait = {.unit = wait->unit, .give_up = give_up}, .wait = wait};
    claim.timed_wait.timer.deadline = deadline;
    unit_block_timed(worker, &claim.timed_wait);
    return load_relaxed(&wait->claim) != WAIT_TIMED_OUT;
}
