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

struct tick {
    uint32_t state; /* enum tick_state */
    /* the present unit's slice is over, whatever is left of it; by any thread, as the next */
    uint32_t urgent;
    uint32_t interrupted; /* a signal says so that has not come yet: more would be queued */
    uint32_t starved;     /* ... could not be preempted for lack of a block (spares.h) */
    /* seen to wait in the kernel: switches + 1, or ANYWAY (preempt/relief.c); by any thread */
    uint64_t stuck;
    uint64_t
        held; /* no tick comes, as it blocks the signal: switches + 1; by the monitor, 0 by the handler */
    uint32_t came;    /* ticks; by the handler */
    uint32_t is_sent; /* to a carrier that does not run yet: `tid` is that of the last one, which sleeps */
    struct watched watched; /* the monitor's */
    uint64_t in_call;       /* the last one found it in the kernel: switches + 1 */
    long slept;             /* and its kernel thread had slept so often */
    uint64_t resumed;       /* where the present, preempted unit resumes; 0: it has resumed */
    uint64_t again;         /* the present unit was preempted there, and resumes its call: switches + 1 */
    uint64_t computes;      /* the present unit was preempted before, or a tick has found it: switches + 1 */
    struct {
        uint64_t span;      /* ns: so long such a unit keeps its worker; 0: the shortest slice */
        uint64_t switches;  /* the worker's, at the last turn that such a unit has waited through */
        uint32_t turns;     /* these in a row */
        bool has_not_moved; /* the present unit is still where it resumed, and has called nothing since */
        uintptr_t sp;       /* ... its stack pointer then, and a sum of what was below */
        uint64_t sum;
    } kernel_wait;                /* tick_look_soon */
    uint64_t slack, slack_before; /* ns: of timers that its kernel thread sleeps by; 0: not changed */
    bool own_wait;                /* the library waits there, for one that is not preempted (os/own_wait.h) */
    bool waited; /* one was preempted where it waited in the kernel; no scheduler has acted on that since */
    bool wanted; /* a slice of one that is not preempted is over: for safepoints */
    bool stands; /* the last tick found the unit where it had resumed; a loop may have come there again */
    bool late;   /* ticks were lost before the last, or it came before its unit had resumed */
    bool early;  /* the next is for a timer's deadline, or to look again; by its requester */
    bool came_early;      /* the present one did */
    bool in_kernel;       /* ... found the unit there, in a call that waits, and `again` is of interest */
    bool blocked;         /* the kernel thread had the signal blocked; r/o */
    uint64_t mask, other; /* what its kernel thread blocks, and what it did at the last tick */
    uint32_t seen;        /* how often that in turn */
    uint32_t ran;         /* ticks that have found the same unit; 0: it had just begun */
    const struct thrum_unit *unit; /* at the last tick; a name only */
    struct thrum_unit *next;       /* the handler's, on its way from one stack to another, as `frame_stack` */
    struct frame_stack *frame_stack,
        *left;         /* what it goes to; what is free at the next tick (preempt/frame_stack.h) */
    char *stack;       /* alternate; NULL: the kernel thread had one */
    uint64_t switches; /* the worker's, then */
    uint64_t period;   /* ns, of the ticks that were asked for last */
    uint64_t changed;  /* when a tick last took a unit away, or was late, or the worker came to its carrier */
    struct alarm alarm;     /* r/o; on carriers that of the present one; none: by the monitor */
    uint64_t due;           /* the monitor's (preempt/monitor.h), as the next two */
    uint32_t sent, skipped; /* the last signal has not come yet; another one would have been due since */
};

/* The runtime preempts; r/o while there are workers. */
extern bool ticks_are_possible;

#endif
