// SPDX-License-Identifier: Apache-2.0
/* Which worker this kernel thread is, and whether the unit on it may be preempted.
 *
 * Both words are thread-local (arch_tls.h). A null worker is an external kernel thread. `thrum_nopreempt` counts the
 * non-preemptible regions that are open; the runtime's own code is one: the worker's queues and caches are only ever
 * touched inside, so a preempting signal that finds it open leaves them alone. Its top bit is set while *no*
 * preemption is pending, so that the decrement that leaves the last region with one pending gives zero, and leaving
 * is one read-modify-write and one branch. Modelled in tests/model/defer.pml. */
#ifndef THRUM_SCHED_CURRENT_H
#define THRUM_SCHED_CURRENT_H

#include <stdbool.h>
#include <stdint.h>

#include "arch_tls.h"
#include "base/inside.h"
#include "sched/upward.h"

struct worker;

#define NOPREEMPT_NOT_PENDING UINT32_C(0x80000000)

extern __thread struct worker *thrum_worker __attribute__((visibility("hidden"), tls_model("initial-exec")));
extern __thread uint32_t thrum_nopreempt __attribute__((visibility("hidden"), tls_model("initial-exec")));

/* Where the public function was called from in which this kernel thread last left a unit, if that function says so. It decides how
 * one returns, and nothing else (arch_return.h). */
extern __thread const void *thrum_left_from __attribute__((visibility("hidden"), tls_model("initial-exec")));

static inline struct worker *worker_here(void) {
    return ARCH_TLS_LOAD(thrum_worker);
}

static inline void unit_leaves_from(const void *place) {
    ARCH_TLS_STORE(thrum_left_from, place);
}
/* The unit has been resumed, or has not left at all. */
static inline bool unit_was_left_from(const void *place) {
    return ARCH_TLS_LOAD(thrum_left_from) == place;
}

/* Into the runtime: from here the unit stays on this worker, whose queues and caches are the caller's. NULL on an
 * external kernel thread. */
ENTERS INSIDE_UNCHECKED static inline struct worker *enter(void) {
    ARCH_TLS_INCREMENT(thrum_nopreempt);
    return worker_here();
}

LEAVES INSIDE_UNCHECKED static inline void leave(void) {
    if (__builtin_expect(ARCH_TLS_DECREMENT_IS_ZERO(thrum_nopreempt), 0))
        preempt_pending();
}

/* A second time, around what leaves and enters again in between, so that it stays inside all the same. */
INSIDE static inline void enter_twice(void) {
    ARCH_TLS_INCREMENT(thrum_nopreempt);
}

INSIDE INSIDE_UNCHECKED static inline void leave_once(void) {
    leave();
}

/* How many regions are open. */
static inline uint32_t regions_open(void) {
    return ARCH_TLS_LOAD32(thrum_nopreempt) & ~NOPREEMPT_NOT_PENDING;
}

/* The caller is inside, within a region of the program's (thrum_nopreempt_begin): no other unit may run in
 * its place, since it would inherit that count. */
INSIDE static inline bool is_in_region(void) {
    return regions_open() != 1;
}

#endif
