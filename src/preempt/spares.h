// SPDX-License-Identifier: Apache-2.0
/* Spares: thread control blocks that no unit uses, to be lent to the worker of one that is preempted; or carriers (sched/carrier.h), which
 * are borrowed as blocks are.
 *
 * A block is lent to one borrower at a time. Unused ones are in a list under a lock. When few are left, one more kernel
 * thread, the provider (provider.h), makes more: pthread_create takes locks of libc, which a preempted unit may hold, so no
 * thread that runs units may wait for it. There are as many as units were preempted at one time, and some.
 *
 * There are two kinds, each a table of functions in a file of its own:
 *
 *   spare_blocks   blocks without a kernel thread, where libc is known (spare_blocks.c, blocks.h)
 *   spare_donors   kernel threads that sleep, and lend their blocks, or themselves as carriers (donors.c)
 *
 * Modelled in tests/model: arm.pml, lend.pml, closing.pml. */
#ifndef THRUM_PREEMPT_SPARES_H
#define THRUM_PREEMPT_SPARES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/inside.h"

struct tcb;
struct thrum_unit;

/* A block that a thread has for life: it was never lent, and never will be to another. Its owner's to write, but for `tcb`. */
struct own_block {
    struct tcb *tcb; /* r/o */
    void *(*fn)(void *);
    void *arg;
    struct thrum_unit *owner; /* that begins with it installed (own_begin) */
    struct own_block *next;   /* in a worker's list of those that are as new (own.c) */
};

/* One runtime has one kind. NULL where a kind has nothing to do. Not inside, if not said otherwise. */
struct spare_kind {
    /* A new one, in no list. NULL: the system grants none. */
    struct tcb *(*make)(void);
    /* The system has refused one to the provider; the next two are its, too. */
    void (*was_refused)(void);
    /* Do the system's limits leave room for one more? */
    bool (*has_room)(void);
    /* The system has refused one not long ago; then: so many more exist than there may be. Inside, under the list's lock. */
    bool (*is_limited)(void);
    uint32_t (*excess)(void);
    /* These, which are linked by `next`, are not needed any more. NULL: they are kept. */
    void (*retire)(struct tcb *first);

    /* For a thread for life. NULL: the system grants none. */
    struct own_block *(*make_own)(void);
    /* By the thread that has it, installed, at its end: makes it as new. NULL: it makes itself as new, or ends. */
    struct own_block *(*renew_own)(struct tcb *tcb);
    /* It is not needed any more, and the record is not to be touched. Inside or not. */
    void (*end_own)(struct tcb *tcb);
    /* By the provider, now and then. */
    void (*collect_own)(void);

    /* There are no workers any more; these are the spares. */
    void (*stop)(struct tcb *first);
    void (*fork_child)(void);
};

extern const struct spare_kind spare_blocks, spare_donors;

/* Makes `count` of them at once. 0 or EAGAIN, then there are none. */
int spares_start(uint32_t count);
/* The provider has ended before, and then the workers. */
void spares_stop(void);
void spares_fork_child(void);

/* Ensures so many spares, if need be by making new ones; others may take them meanwhile. The caller is not inside. 0
 * or EAGAIN. */
NOT_INSIDE int spares_make(uint32_t count);

/* NULL: there are no more than `keep` spares; more are being made. */
INSIDE struct tcb *spares_take(uint32_t keep);
INSIDE void spares_give(struct tcb *tcb);

/* There are only the spares that are kept back for units that have a block for life. */
SIGSAFE bool spares_are_scarce(void);
/* Not even those. */
SIGSAFE bool spares_are_short(void);

/* As the functions of the kind. */
struct own_block *spares_make_own(void);
bool spares_recycle_own(void); /* they can be made as new */
struct own_block *spares_renew_own(struct tcb *tcb);
void spares_end_own(struct tcb *tcb);

/* --- for the provider --------------------------------------------------------------------------------- */

/* As many as are wanted in reserve. False: the system grants no more. */
bool spares_make_enough(void);
/* Some may be unneeded: it must look every now and then. */
bool spares_are_watched(void);
void spares_retire_surplus(void);
void spares_collect(void);

#endif
