// SPDX-License-Identifier: Apache-2.0
/* Giving memory back while the runtime runs.
 *
 * A worker keeps two magazines of each kind of object; more lies in the depots (context/depot.h). When something has
 * come there, `depot_surplus` says so, and the next worker that looks starts a timer. When that fires, a tasklet
 * gives back what has lain there for all that time: a part, then it lets others run, and so on. Nothing lies in the
 * depots for long, and a runtime whose depots are empty has no timer.
 *
 *   depot_surplus: NONE -> SURPLUS (depot.c: something has come)
 *                  SURPLUS, LACKING -> ARMED (trim_look: the timer is started)
 *                  ARMED -> LACKING (trim_look: there was no memory for it; the next look tries again)
 *                  ARMED -> NONE (the tasklet, before it looks: what comes from then on is seen)
 *
 * A worker looks when it has given something: it may be about to wait in the kernel, or to compute for long. It looks before
 * it parks, too, and does not park on SURPLUS. A thread that gives but does not look wakes one (trim_tell). */
#include "sched/trim.h"

#include "context/stack.h"
#include "os/clock.h"
#include "sched/pool/order.h"
#include "sched/time/timer.h"
#include "thrum/thrum.h"

enum { CHUNKS_AT_ONCE = 1024, AGE_NS = 400000000 };

static struct {
    struct timer timer;         /* while ARMED */
    struct thrum_unit *tasklet; /* likewise: made before, so that nothing can fail when it is due */
    bool again; /* the next is due at once; a hint: while one tasklet looks, another is armed */
} trim;

/* True: something is left for later. */
static bool trim_all(uint64_t before) {
    unsigned left = CHUNKS_AT_ONCE, none = 0;
    bool are_read = order_units_are_read();
    bool more = depot_trim(&unit_depot, before, are_read ? &none : &left) || are_read;
    for (unsigned i = 0; i < STACK_CLASSES; i++)
        more |= depot_trim(&stack_depots[i], before, &left);
    store_relaxed(&trim.again, left == 0);
    return more || left == 0;
}

static void *run(void *unused) {
    enter();
    uint32_t none = DEPOT_NONE;
    /* Pairs with the cas of arm and of the depot: what lies in `trim` may be written again. */
    store_seq_cst(&depot_surplus, DEPOT_NONE);
    /* Pairs with arm's. */
    if (trim_all(clock_monotonic_ns() - AGE_NS))
        cas_acq_rel(&depot_surplus, &none,
                    DEPOT_SURPLUS); /* else something has come, and may be ARMED already */
    trim_look(worker_here());
    leave();
    return unused;
}

INSIDE static void due(struct worker *worker, struct timer *timer) {
    (void)timer;
    unit_wake(worker, trim.tasklet);
}

/* Without memory for the tasklet it is tried again when there is some. */
INSIDE static void arm(struct worker *worker) {
    uint32_t surplus = load_relaxed(&depot_surplus);
    if (worker_for_timers(worker) == NULL) {
        trim_tell();
        return;
    }
    /* Pairs with run's store and cas, and the depot's. */
    if (!(surplus & 1) || !cas_acq_rel(&depot_surplus, &surplus, DEPOT_ARMED))
        return;
    trim.tasklet = unit_make_tasklet(worker, run);
    if (trim.tasklet == NULL) {
        store_relaxed(&depot_surplus, DEPOT_LACKING);
        return;
    }
    trim.timer =
        (struct timer){.deadline = timer_now() + (load_relaxed(&trim.again) ? 0 : AGE_NS), .fire = due};
    timer_start(worker, &trim.timer);
}

INSIDE static void look(void) {
    trim_look(worker_here());
}

void trim_init(void) {
    store_relaxed(&depot_surplus, DEPOT_NONE);
    store_relaxed(&trim.again, false);
    trim_arm = arm;
    depot_has_surplus = look;
}
