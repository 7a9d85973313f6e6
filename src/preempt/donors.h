// SPDX-License-Identifier: Apache-2.0
/* Spares. Where they can be had, they are thread control blocks without a kernel thread (blocks.h), and what is said of donors
 * here holds for them but for their kernel threads. Else donors: kernel threads that sleep until the runtime ends, and lend
 * their thread control blocks meanwhile; or themselves, as carriers (sched/carrier.h), which are spares and borrowed as blocks
 * are.
 *
 * A block is lent to one borrower at a time. Unused ones are spares, in a list under a lock. When few are left one
 * more kernel thread, the provider, makes more: pthread_create takes locks of libc, which a preempted unit may hold,
 * so no thread that runs units may wait for it. There are as many as units were preempted at one time, and some.
 *
 * The kernel writes the number of the CPU beside a block (os/rseq.h): the CPU on which the block's own kernel thread
 * runs. That would be wrong for a borrower, so a donor gives up its registration.
 *
 * A thread's block is on its stack, which goes with it: donors end when no thread runs on a block of theirs.
 *
 * Modelled in tests/model: arm.pml, lend.pml, closing.pml. */
#ifndef THRUM_PREEMPT_DONORS_H
#define THRUM_PREEMPT_DONORS_H

#include <stdbool.h>
#include <stdint.h>

struct exception_globals;
struct tcb;

/* Makes `count` of them at once, and the provider, which calls arm() and add_relief(). 0 or EAGAIN, then there are
 * none. */
int donors_start(uint32_t count, struct exception_globals *(*exceptions_here)(void), bool (*arm)(void),
                 bool (*add_relief)(void));
/* The provider ends, before the workers do; then the others. */
void donors_close(void);
void donors_stop(void);
void donors_fork_child(void);

/* Ensures so many spares, if need be by making new ones; others may take them meanwhile. The caller is not inside. 0
 * or EAGAIN. */
int donors_make(uint32_t count);

/* A donor that was never lent, and never will be to another, for a thread that calls fn(arg); its own to write. NULL:
 * the system grants none. The caller is not inside. */
struct private_donor {
    struct tcb *tcb; /* r/o */
    void *(*fn)(void *);
    void *arg;
};
struct private_donor *donors_make_private(void);
/* It ends, soon, and with it the record. */
void donors_end_private(struct tcb *tcb);

/* What is lent are blocks without a kernel thread (blocks.h), and no donors. By a thread that has a private one, installed, at its
 * end: it is made as new. Not inside. */
bool donors_are_blocks(void);
void donors_renew(const struct tcb *tcb);
struct private_donor *donors_private_of(struct tcb *tcb);

/* NULL: there are no more than `keep` spares; more are being made. Inside. */
struct tcb *donors_take(uint32_t keep);
void donors_give(struct tcb *tcb);

/* There are only the spares that are kept back for units that have a block for life. */
bool donors_are_scarce(void);

#endif
