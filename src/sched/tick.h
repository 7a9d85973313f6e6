// SPDX-License-Identifier: Apache-2.0
/* Ticks interrupt a worker once a slice, while another unit is runnable. What starts and stops them is
 * src/preempt's (upward.h).
 *
 *   state  meaning                                               left
 *   NEVER  the runtime has no preemption
 *   OFF    no tick is requested: the worker searches or sleeps   -> ON by the worker, when it begins to run a unit
 *   ON     one comes each period, where threads have ranks at    -> OFF by the handler, which finds its loop there
 *          the next deadline of a timer, and soon after a unit
 *          has resumed a call in the kernel                      -> REST by the handler, which finds no other unit to run,
 *                                                                   in the function of a scheduler, too
 *   REST   none comes, unless at the next deadline of a timer    -> ON (cas) by the thread that has made a unit runnable,
 *                                                                   or the handler at that deadline
 *                                                                -> OFF (cas) by the worker, when it searches
 *
 * No push is missed: a worker that rests (1) cancels its ticks, (2) is counted in idle.resting and says REST, (3)
 * looks everywhere once more; a pusher pushes and then reads idle.resting. As with parking (idle.h) the rare side's
 * fence, between (2) and (3), makes up for the pushers'. In (2) the count is first: the thread that ends a rest
 * counts it out. Only the thread that changes REST to ON, by a cas, requests ticks again. While a worker searches or
 * is parked no tick is needed: that worker will run what was pushed, and looks again if it is the last to stop
 * searching (idle_found).
 *
 * Modelled in tests/model/tick.pml. */
#ifndef THRUM_SCHED_TICK_H
#define THRUM_SCHED_TICK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "os/alarm.h"
#include "sched/upward.h"
#include "thrum/preempt.h"

struct frame_stack;
struct thrum_unit;
struct worker;

enum tick_state { TICK_NEVER, TICK_OFF, TICK_ON, TICK_REST };

/* What the monitor saw of a worker when it last looked, and since when it is so; 0: it has not (preempt/watch.h). */
struct watched {
    uint64_t since, switches;
    uint64_t
        ran; /* CPU time of its kernel thread when that was first found running with the signal blocked, ns; 0: it was not */
    uint32_t came;
};

/* A worker's, by writers. "Handler": what the signal runs, on the worker, there or when a region ends. Where nothing else is
 * said only the worker and its handler read it, too. A number of switches is the worker's, plus 1: what was noted so is
 * about a unit that has not been switched from since. */
struct tick {
    uint32_t state; /* enum tick_state; by the table above */

    /* A slice of a unit that is not preempted is over: for safepoints.
     * Legal to set: by the handler at the end of such a slice; by the worker's begin, for good, where there are no ticks.
     * Legal to clear: by the unit at a safepoint, where there are ticks. */
    bool wanted;

    /* The library waits there, for one that is not preempted (os/own_wait.h).
     * Legal to set, and to clear: by the worker inside, which it stays in between. */
    bool own_wait;

    /* The worker was sent to a carrier that does not run yet: its `tid` is that of the last one, which sleeps.
     * Legal to set: by the sender, before the order. Legal to clear: by that carrier, when `tid` is its own. */
    uint32_t is_sent;

    /* The present unit could not be preempted for lack of a block (preempt/spares.h).
     * Legal to set: by the worker inside, which then asks the provider.
     * Legal to clear: by the provider, by an exchange; it then interrupts the worker. */
    uint32_t starved;

    /* By other threads. */
    struct {
        /* The present unit's slice is over, whatever is left of it.
         * Legal to set: by any thread before it interrupts the worker, unless the state is NEVER; so illegal without a
         * signal that follows. Legal to clear: by the handler, at a tick that ends the slice for that. */
        uint32_t urgent;
        /* A signal says so that has not come yet: more would be queued.
         * Legal to set: by an exchange that finds 0, after which the thread must send it, or clear this if that fails.
         * Legal to clear: by the handler, by an exchange; by the worker that has come to another carrier, which then
         * sends it there. */
        uint32_t interrupted;
        /* It waits in the kernel: switches + 1, or ANYWAY (preempt/relief.c).
         * Legal to set: by the handler, before it wakes a relief worker. Legal to clear: by that, by an exchange, with
         * which the store pairs. */
        uint64_t stuck;
    } asked;

    /* By the thread that requests ticks: the worker, the one that ended its rest, or that has shortened all periods. */
    struct {
        uint64_t period; /* ns, of those that were asked for last */
        /* The next is for a timer's deadline, or to look again: no slice has passed when it comes.
         * Legal to set: before the request for such a tick. Illegal when the worker rests. */
        bool early;
    } request;

    /* By the monitor (preempt/monitor.h, watch.h). */
    struct {
        uint64_t due; /* the next one; by requesters, too: pairs with monitor.until (preempt/monitor.h) */
        /* The last signal has not come yet. Its changes pair: the one that finds 0 sees the tid (preempt/monitor.h).
         * Legal to set: by the monitor, by an exchange that finds 0, after which it sends one.
         * Legal to clear: by the handler; by the monitor, if none can be sent; by requesters, and by a worker that has come
         * to another carrier. */
        uint32_t sent;
        /* Another one would have been due since: legal to set by the monitor while `sent`, to clear by the handler. */
        uint32_t skipped;
        /* No tick comes, as the present unit blocks the signal: switches + 1.
         * Legal to set: by the monitor, before it wakes a relief worker, whose load pairs with it. Legal to clear: by the
         * handler. */
        uint64_t held;
        struct watched watched;
    } monitor;

    /* By the handler, or what follows the preempted unit: the last tick, and what it found. */
    struct {
        uint64_t
            at; /* when it came, or ticks were turned on; by the thread that did, too. Read by src/inspect alone */
        uint32_t came;                 /* how many; read by the monitor */
        uint32_t ran;                  /* that have found the same unit; 0: it had just begun */
        const struct thrum_unit *unit; /* that it found; a name only */
        uint64_t switches;             /* the worker's, then */
        uint64_t changed; /* when one last took a unit away, or was late, or the worker came to its carrier */
        uint64_t resumed; /* where the present, preempted unit resumes; 0: it has resumed */
        uint64_t computes; /* the present unit was preempted before, or a tick has found it: switches + 1 */
        /* The present one is an early one (request.early).
         * Legal to set: when it comes. Legal to clear: when it has been asked whether it ends a slice. */
        bool came_early;
        /* Ticks were lost before it, or it came before its unit had resumed: a slice begins with it.
         * Legal to set: when it comes; when a preempted unit resumes, for a tick that came meanwhile.
         * Legal to clear: by the tick that has been asked whether it ends a slice. */
        bool late;
        /* It found the unit where that had resumed; a loop may have come there again. Written at each. */
        bool stands;
        /* ... in code that ticks spare (handler_spares). Written at each.
         * Legal to clear: by the unit that is there next, inside, which then takes the tick as one that came in its region. */
        bool spared;
    } last;

    /* By the handler: units that wait in the kernel (tick_look_soon, preempt/kernel_wait.h). */
    struct {
        uint64_t in_call;  /* the last tick found it in the kernel: switches + 1 */
        long slept;        /* and its kernel thread had slept so often */
        uint64_t again;    /* the present unit was preempted there, and resumes its call: switches + 1 */
        uint64_t span;     /* ns: so long such a unit keeps its worker; 0: the shortest slice */
        uint64_t switches; /* the worker's, at the last turn that such a unit has waited through */
        uint32_t turns;    /* these in a row */
        uintptr_t sp;      /* its stack pointer when it resumed, and a sum of what was below */
        uint64_t sum;
        /* The present tick found the unit there, in a call that waits.
         * Legal to set: by that tick, and only while `again` is. Legal to clear: when it has been asked whether it ends a
         * slice. */
        bool in_kernel;
        /* ... where it resumed, and it has called nothing since: only with in_kernel. Written as that. */
        bool has_not_moved;
        /* One was preempted where it waited in the kernel; no scheduler has acted on that since.
         * Legal to set: by the handler, where a scheduler chooses. Legal to clear: by that scheduler, before it chooses. */
        bool waited;
    } kernel_wait;

    /* By the handler, on its way from one stack to another (preempt/frame_stack.h). */
    struct {
        struct thrum_unit *next;   /* what runs then */
        struct frame_stack *stack; /* what it goes to; NULL: the unit's own */
        struct frame_stack *left;  /* what is free at the next tick */
    } frame;

    /* By the worker's kernel thread, of which it is told. Carriers have their own, and hand them over (sched/carrier.h). */
    struct {
        struct alarm alarm;           /* r/o; on carriers that of the present one; none: by the monitor */
        char *stack;                  /* alternate; NULL: the kernel thread had one; r/o */
        bool blocked;                 /* it had the signal blocked before it became the worker; r/o */
        uint64_t mask;                /* what it blocks */
        uint64_t other;               /* and did at the last tick; read by other workers for the primary */
        uint32_t seen;                /* how often that in turn */
        uint64_t slack, slack_before; /* ns: of timers that it sleeps by; 0: not changed */
    } thread;
};

/* The runtime preempts; r/o while there are workers. */
extern bool ticks_are_possible;

#endif
