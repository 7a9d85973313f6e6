// SPDX-License-Identifier: Apache-2.0
/* Asking the kernel, at a job's end, about what a program may have done by system calls of its own making, which the
 * front end does not see. Only what is cheap to ask is asked; docs/internals/soundness.md lists the rest. Row unseen. */
#include <errno.h>
#include <linux/io_uring.h>
#include <sys/syscall.h>

#include "base/atomic.h"
#include "base/rows.h"
#include "kthread/fresh/fresh.h"
#include "os/ticks.h"

#ifndef IORING_ENTER_REGISTERED_RING
#define IORING_ENTER_REGISTERED_RING (1U << 4)
#endif

/* --- io_uring ------------------------------------------------------------------------------------------- */

static bool may_ask; /* r/o after the set-up */

/* Enters the ring that the thread has registered under number 0, with nothing to do. A thread that never set up or
 * entered a ring has no context for that, which is looked at first (Linux 5.18; an older kernel does not know the flag).
 * Any other answer comes from one that has. */
long uring_ask(void) {
    return sys(SYS_io_uring_enter, 0, 0, 0, IORING_ENTER_REGISTERED_RING, NULL, 0);
}

/* The caller may have used one itself. */
void uring_permitted(void) {
    long answer = uring_ask();
    may_ask = answer >= 0 || answer == -EINVAL || answer == -EBADF;
}

bool uring_used(void) {
    return may_ask && !skipped(ROW_UNSEEN) && !skipped(ROW_KERNEL_TIES) && uring_ask() != -EINVAL;
}

/* --- scheduling ------------------------------------------------------------------------------------------- */

enum { ASK_EVERY_US = 1000 };

/* The kernel's struct sched_attr, as it was first. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static struct fresh_scheduling ask(void) {
    struct attributes got;
    if (sys(SYS_sched_getattr, 0, &got, sizeof got, 0) != 0)
        return (struct fresh_scheduling){.policy = UINT32_MAX};
    return (struct fresh_scheduling){got.policy, got.flags, got.nice, got.priority};
}

void scheduling_note(struct fresh_state *state) {
    state->scheduling = ask();
    state->scheduling_asked = arch_ticks();
}

bool scheduling_changed(struct fresh_state *state) {
    uint64_t now = arch_ticks();
    if (skipped(ROW_UNSEEN) || skipped(ROW_LINEAGE) ||
        now - state->scheduling_asked < ASK_EVERY_US * ticks_per_us())
        return false;
    struct fresh_scheduling is = ask(), *was = &state->scheduling;
    state->scheduling_asked = now;
    return is.policy != was->policy || is.flags != was->flags || is.nice != was->nice ||
           is.priority != was->priority;
}
