// SPDX-License-Identifier: Apache-2.0
/* Sleeping: waiting with a deadline for a wake-up that never comes. */
#include "sched/cancel.h"
#include "sched/wait.h"
#include "sched/worker.h"
#include "thrum/time.h"

uint64_t thrum_now(void) {
    return timer_now();
}

void thrum_sleep_until(uint64_t deadline) {
    if (deadline <= timer_now()) {
        thrum_yield();
        return;
    }
    struct worker *worker = enter();
    struct wait wait = {.unit = unit_self(worker)};
    unit_expect_may_wait(wait.unit, AWAITS_TIME);
    unit_await(wait.unit, AWAITS_TIME, NULL);
    unit_block_until(worker, &wait, cancel_point(worker, deadline));
    leave();
    cancel_act(ETIMEDOUT);
}

void thrum_sleep(uint64_t ns) {
    uint64_t deadline;
    if (__builtin_add_overflow(timer_now(), ns, &deadline))
        deadline = TIMER_NEVER;
    thrum_sleep_until(deadline);
}
