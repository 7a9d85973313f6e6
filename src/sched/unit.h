// SPDX-License-Identifier: Apache-2.0
/* What is scheduled: a ULT (user-level thread), a tasklet (runs to completion on whatever stack is current), a
 * worker's own loop, or an external kernel thread that waits for one of the others. Everything that can wait is a
 * unit, so that synchronisation objects know one kind of waiter.
 *
 * `sp` says where a unit is:
 *
 *   value        meaning                                                            written by
 *   UNIT_ON_CPU  it runs, or is just leaving: it has announced itself somewhere     the unit itself, before it
 *   (NULL)       (a run queue, a waiter list) but its registers are not saved yet   announces itself
 *   UNIT_NEW     it never ran; it has no stack, but one of the user's own           its creator
 *   UNIT_KEPT    it keeps its kernel thread, which must resume it (carrier.h)       the unit itself, before it
 *                                                                                   announces itself
 *   other        its saved stack pointer: it can be resumed                         arch_switch, off its stack
 *
 * A unit that announces itself sets UNIT_ON_CPU first. arch_switch stores the real stack pointer when the registers
 * are saved and the worker has left that stack. A worker that resumes the unit waits for that store, in arch_switch
 * too, but never while its own unit is not published. So nothing has to run "after the switch" and no lock is held
 * across one.
 *
 * `join` says which thread may free it:
 *
 *   JOIN_NONE      it has not ended and no thread waits for its end
 *   JOIN_DETACHED  it is never joined: it frees itself
 *   JOIN_ENDED     it has ended, the result is in `arg`; the joiner frees it
 *   > 0, signed    the unit that waits for its end
 *   < 0            the unit that waits for its end until a deadline, marked by JOIN_TIMED. It may stop waiting at any time,
 *                  and be gone: no thread reads it before having taken it from here
 *
 *   JOIN_NONE -> joiner (cas by the joiner; a plain store where it alone can run the thread), DETACHED (cas by the detacher),
 *   ENDED (exchange by itself; a plain store where no other thread can have its handle yet); joiner -> ENDED (itself, exchange
 *   or, if it is not a timed one, store); timed joiner -> JOIN_NONE (cas by its timer, or by itself if it is external).
 *   The thread that takes a joiner from here wakes it, or is it. */
#ifndef THRUM_SCHED_UNIT_H
#define THRUM_SCHED_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "sched/awaits.h"

struct thrum_unit;
struct worker;
struct thrum_pool;

/* A unit of a kind before UNIT_TASKLET may give way to another on its worker. */
enum unit_kind {
    UNIT_FREE, /* unused; what new memory says */
    UNIT_ULT,
    UNIT_BOUND,   /* a ULT that runs on one worker only */
    UNIT_POOLED,  /* a ULT that has a pool */
    UNIT_TASKLET, /* runs to its end on whatever stack there is */
    UNIT_LOOP,
    UNIT_EXTERNAL,
    UNIT_SOLO, /* a ULT that has a kernel thread of its own (runtime/solo.h) */
};

#define UNIT_ON_CPU NULL
#define UNIT_NEW    ((void *)-1)
#define UNIT_KEPT   ((void *)-2)

#define JOIN_NONE     ((struct thrum_unit *)0)
#define JOIN_ENDED    ((struct thrum_unit *)1)
#define JOIN_DETACHED ((struct thrum_unit *)2)
#define JOIN_TIMED    (~(UINTPTR_MAX >> 1)) /* no address has this bit */
#define JOIN_WATCH    ((uintptr_t)4)        /* besides JOIN_TIMED: a struct join_watch, no unit */

struct thrum_unit {
    void *sp; /* first: context.S reads and writes it there */
    struct thrum_unit *join;
    union {
        void *(*fn)(void *);
        struct thrum_unit *successor; /* once it ends by exit.c: the unit to run in its place, or NULL */
    };
    void *arg;               /* the result, once it has ended */
    struct thrum_unit *next; /* in at most one list: a free list, a shared queue, a waiter list */
    char *stack_top;
    union {
        uint64_t awaits; /* awaits.h; its kind is AWAITS_NOTHING while the other is meant */
        struct thrum_unit
            *called_child; /* while it waits in the run queue for the child that it was left for:
                                         that child */
    };
    uint8_t kind; /* enum unit_kind; of a living one changed by migrate.c alone: pairs with unit_place */
    uint8_t
        preempt;  /* enum thrum_preempt_mode; r/o, but for a front end's, which may change it at any time */
    bool escaped; /* a thread other than its creator may have its handle */
    uint8_t priority;
    /* some of those below may not be as empty as a new thread must find them; set by any thread */
    bool extras;
    bool cancellable : 1;   /* r/o */
    bool measured : 1;      /* its stack must begin untouched; r/o */
    bool cancels_locks : 1; /* besides `cancellable`: also where it waits for a lock; r/o */
    bool begins_solo : 1;   /* THRUM_SPAWN_OWN_KTHREAD; r/o */
    uint8_t unused : 4;     /* 0: so all eight bytes are known (unit_is_plain) */
    bool at_cancel_point;   /* its next wait may be ended by thrum_cancel (cancel.h); its own */
    uint8_t stack_class;    /* r/o while it has a stack; the last of unit_is_plain's eight bytes */
    /* --- second cache line: not touched by spawn, switch and join --- */
    struct worker *bound;       /* UNIT_BOUND, UNIT_SOLO: to this one */
    struct unit_values *values; /* keys.c */
    uint32_t permit;            /* suspend.c */
    union {
        uint32_t wake; /* UNIT_EXTERNAL: the futex word that it sleeps on (external.c) */
        uint32_t
            clocked; /* else: the kernel thread on which it last read its clock (libc_self.c); 0: it has not */
    };
    struct thrum_pool
        *pool; /* where it goes when it can run; NULL: the run queue of the worker that says so */
    struct thrum_unit
        *child; /* under a deadline pool's lock, as `arrival`; in a deque pool the next newer one */
    uint64_t deadline, arrival;
    struct {
        void *caught;
        unsigned uncaught;
    } exceptions; /* while it is switched out with exceptions in flight */
    union {
        uint64_t float_control;         /* its creator's, while it is UNIT_NEW */
        struct thrum_cleanup *cleanups; /* exit.c; from when it runs, if has_cleanups */
    };
    uintptr_t cancel; /* cancel.h */
    uint64_t id;      /* 0: not asked for yet */
    uint64_t name[2]; /* about.c */
    struct tcb
        *tcb; /* tcb.h: its own, or NULL: its worker's; its own to write. carrier.h: its kernel thread's */
    uint32_t slice; /* us; 0: the runtime's; its own to write, or its front end's */
    bool has_cleanups;
    bool is_primary;     /* what ran on the thread that called thrum_init; r/o */
    bool took_tcb;       /* `tcb` was its worker's; it gives it back when it resumes */
    bool blocks_sigchld; /* besides what its worker blocks: it waits in system(); its own to write */
} __attribute__((aligned(64)));

/* A unit's CPU clock: that of the kernel thread, and `ahead` ns more (modulo 2^64). Its own. */
struct unit_clock {
    uint64_t ahead, last;
};

/* The uppermost bytes of each stack of a ULT's own. */
struct unit_head {
    struct {
        uint64_t words[4];
    } __attribute__((aligned(16))) exception; /* exit.c's, while the frames below are unwound */
    char *low;                                /* STACK_CLASS_USER: where the memory begins */
    uint64_t annotation;                      /* likewise: annotate_stack_new's */
    struct unit_clock clock;                  /* if it has `clocked` */
};

static inline struct unit_head *unit_head_of(const struct thrum_unit *unit) {
    return (struct unit_head *)(void *)(unit->stack_top - sizeof(struct unit_head));
}

/* Where its first frame begins. */
static inline char *unit_first_frame(const struct thrum_unit *unit) {
    return unit->stack_top - sizeof(struct unit_head);
}

/* A unit as it stands in `join` when it waits until a deadline, and what stands there as a unit. */
static inline struct thrum_unit *join_timed(struct thrum_unit *unit) {
    return (struct thrum_unit *)((uintptr_t)unit | JOIN_TIMED);
}

static inline struct thrum_unit *join_unit(struct thrum_unit *joiner) {
    return (struct thrum_unit *)((uintptr_t)joiner & ~JOIN_TIMED);
}

/* A waiter for a thread's end among other things (sync/wait_any.c), as it stands in `join`. The thread that has taken
 * it from there calls ended(); it does not go away before. */
struct join_watch {
    void (*ended)(struct worker *worker, struct join_watch *watch);
};

static inline struct thrum_unit *join_by_watch(struct join_watch *watch) {
    return (struct thrum_unit *)((uintptr_t)watch | JOIN_TIMED | JOIN_WATCH);
}

/* NULL: it is not one. */
static inline struct join_watch *join_watch_of(struct thrum_unit *joiner) {
    bool is_one = (intptr_t)joiner < 0 && (uintptr_t)joiner & JOIN_WATCH;
    return is_one ? (struct join_watch *)((uintptr_t)joiner & ~(JOIN_TIMED | JOIN_WATCH)) : NULL;
}

static inline bool join_is_untimed(const struct thrum_unit *joiner) {
    return (intptr_t)joiner > (intptr_t)JOIN_DETACHED;
}

/* True if the eight bytes from `kind` are as unit_set left them, whatever its stack: at its end there is nothing to do but for
 * its stack and its joiner. It has no extras and no preemption mode of its own, and only its creator may have its handle. */
static inline bool unit_is_plain(const struct thrum_unit *unit) {
    typedef uint64_t __attribute__((may_alias)) eight_bytes;
    const uint64_t word = load_relaxed((const eight_bytes *)(const void *)&unit->kind);
    return word << 8 == (uint64_t)UNIT_ULT << 8; /* all but the last byte, which is the uppermost */
}

/* Where the unit is enqueued when it becomes runnable, as its waker finds it: what the kind implies, bound or pool,
 * is set. */
static inline enum unit_kind unit_place(const struct thrum_unit *unit) {
    return (enum unit_kind)load_acquire(&unit->kind);
}

/* The unit is the caller's: it waits nowhere. NULL: no pool. */
void unit_set_pool(struct thrum_unit *unit, struct thrum_pool *pool);

_Static_assert(offsetof(struct thrum_unit, sp) == 0, "context.S");
_Static_assert(sizeof(struct thrum_unit) == 192, "a million of them");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && offsetof(struct thrum_unit, kind) == 56 &&
                   offsetof(struct thrum_unit, stack_class) == 63,
               "unit_is_plain");
_Static_assert(offsetof(struct thrum_unit, bound) == 64, "the first line holds what the fast paths touch");

#endif
