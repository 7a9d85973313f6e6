// SPDX-License-Identifier: Apache-2.0
/* See mode.h: which table. */
#include "preempt/mode.h"

#include "preempt/give_way.h"
#include "preempt/preempt.h"
#include "sched/worker.h"

const struct preempt_mode *mode_of_runtime(void) {
    return preempt.lends ? &mode_lend : preempt.carries ? &mode_klt : &mode_yield;
}

/* One with a block for life keeps that, whatever its mode. */
const struct preempt_mode *mode_of(const struct thrum_unit *unit) {
    bool owns = unit->tcb != NULL;
    if (!owns && preempt_mode_of(unit) == THRUM_PREEMPT_YIELD)
        return &mode_yield;
    if (preempt.lends)
        return owns ? &mode_own_tls : &mode_lend;
    return preempt.carries ? &mode_klt : &mode_yield;
}
