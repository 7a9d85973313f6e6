// SPDX-License-Identifier: Apache-2.0
/* What is scheduled: a ULT (user-level thread), a tasklet (runs to its end on whatever stack there is), a worker's
 * own loop, or an external kernel thread that waits for one of the others. Everything that can wait is a unit, so
 * that synchronisation objects know one kind of waiter.
 *
 * `sp` says where a unit is:
 *
 *   value        meaning                                                            who may write it
 *   UNIT_ON_CPU  it runs, or is just leaving: it has announced itself somewhere     the unit itself, before it
 *   (NULL)       (a run queue, a waiter list) but its registers are not saved yet   announces itself
 *   UNIT_NEW     it never ran and has no stack                                      who creates it
 *   else         its saved stack pointer: it may be gone on with                    arch_switch, as its last act
 *
 * A unit that announces itself sets UNIT_ON_CPU first; arch_switch stores the real one when all registers are saved;
 * who goes on with it waits for that (also in arch_switch, when its own registers are saved). So nothing has to run
 * "after the switch" and no lock is held across one.
 *
 * `join` says who may free it:
 *
 *   JOIN_NONE      it has not ended and nobody waits for its end
 *   JOIN_DETACHED  nobody will: it frees itself
 *   JOIN_ENDED     it has ended, the result is in `arg`; the joiner frees it
 *   else           the unit that waits for its end
 *
 *   JOIN_NONE -> joiner (cas by the joiner), DETACHED (cas by who detaches), ENDED (exchange by itself; a plain store
 *   where nobody else can have its handle yet); joiner -> ENDED (itself), JOIN_NONE (a timed joiner's cas). */
#ifndef THRUM_SCHED_UNIT_H
#define THRUM_SCHED_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"

struct thrum_unit;
struct worker;

enum unit_kind {
    UNIT_ULT,
    UNIT_BOUND, /* a ULT that runs on one worker only */
    UNIT_LOOP,
    UNIT_EXTERNAL,
};

#define UNIT_ON_CPU NULL
#define UNIT_NEW    ((void *)1)

#define JOIN_NONE     ((struct thrum_unit *)0)
#define JOIN_ENDED    ((struct thrum_unit *)1)
#define JOIN_DETACHED ((struct thrum_unit *)2)

struct thrum_unit {
    void *sp; /* first: arch_call and arch_begin read it there */
    struct thrum_unit *join;
    void *(*fn)(void *);
    void *arg;               /* the result, once it has ended */
    struct thrum_unit *next; /* in at most one list: a free list, a shared queue, a waiter list */
    char *stack_top;
    struct thrum_unit
        *begetting;      /* while it waits in the run queue for the child that it was left for: that child */
    uint8_t kind;        /* enum unit_kind, r/o */
    uint8_t stack_class; /* r/o while it has a stack */
    bool escaped;        /* somebody but its creator may have its handle */
    uint8_t priority;
    uint32_t wake; /* UNIT_EXTERNAL: the futex word that it sleeps on, 1 when it has been woken */
    /* --- second cache line: not touched by spawn, switch and join --- */
    struct worker *bound; /* UNIT_BOUND: to this one; r/o */
    struct {
        void *caught;
        unsigned uncaught;
    } exceptions; /* while it is switched out with exceptions in flight */
    uint64_t id;
} __attribute__((aligned(64)));

_Static_assert(offsetof(struct thrum_unit, sp) == 0, "context.S");
_Static_assert(offsetof(struct thrum_unit, bound) == 64, "the first line holds what the fast paths touch");

#endif
