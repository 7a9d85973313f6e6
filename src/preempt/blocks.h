// SPDX-License-Identifier: Apache-2.0
/* Thread control blocks of libc's that have no kernel thread.
 *
 * A stillborn block is made by starting a kernel thread that leaves again at once, by a raw exit: past what libc does at a
 * thread's end. For libc it stays the block of a running thread: in its list, with thread-local variables and a handle. So
 * a later dlopen finds its thread-locals, and setuid() sees it. It costs memory alone, and only that of libc's part: the stack of its
 * kernel thread lies where the next blocks will be.
 *
 * What libc must not notice:
 *
 *   - The kernel clears the block's thread number. In its place the block gets a number of its own, above all that the kernel
 *     gives: so its mutexes have an owner that no other block has, and a signal that is sent to it is refused.
 *   - __nptl_nthreads counts it. It is taken off, or pthread_exit() of the last thread would not end the process.
 *   - setuid() and its like mark every block in libc's list, and wait until a signal handler has taken the mark off. Of a kernel
 *     thread that leaves between mark and signal that handler never runs. So it leaves as libc's own threads do: by the bit
 *     EXITING, which is only set while there is no mark, and with which none is put. Once the kernel thread is gone the
 *     bit is cleared; from then on the signal is refused, and libc takes the mark off itself.
 *
 * Which libc does all that is read from its sources: 2.34 to 2.42. blocks_learn() says whether this one is among them, and tries
 * one block. Elsewhere donors (donors.c) lend theirs.
 *
 * A block that is not used any more is kept, for this runtime or the next: it is never given back to libc, whose caches of
 * malloc it may have.
 *
 * Modelled in tests/model/stillborn.pml. */
#ifndef THRUM_PREEMPT_BLOCKS_H
#define THRUM_PREEMPT_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/inside.h"
#include "preempt/spares.h"
#include "sched/tcb.h"

struct block {
    struct tcb tcb;       /* first */
    struct own_block own; /* its owner's, if it is a thread's for life */
    uintptr_t record;     /* libc's: its pthread_t; r/o, as the next */
    uint32_t number;      /* that libc has for it */
    struct block *next;   /* of those that are kept */
};

/* Tries it the first time, and tells why not in *why. The first block is kept. Not inside. */
enum blocks_answer { BLOCKS_NOT_NOW, BLOCKS_USABLE, BLOCKS_UNUSABLE };
NOT_INSIDE enum blocks_answer blocks_learn(struct exception_globals *(*exceptions_here)(void),
                                           const char **why);

/* NULL: no memory, or the system grants no thread. Not inside: this takes locks of libc's, but if one is kept. */
NOT_INSIDE struct block *block_make(struct exception_globals *(*exceptions_here)(void));

/* No thread uses it any more, and it is as new (block_renew). Inside or not; takes no lock of libc's. */
void block_keep(struct block *block);

/* On the block, which is installed: runs the destructors of the program's thread-locals and makes them as those of a new thread are.
 * _renew_elsewhere: by a thread with another block, which runs no unit. */
NOT_INSIDE void block_renew(const struct block *block);
NOT_INSIDE void block_renew_elsewhere(struct block *block);

/* For block_renew. The cancellation state is a new block's again; how far libc's list of robust mutexes is from its record, 0 if
 * there is none. */
void block_reset_state(const struct block *block);
ptrdiff_t block_robust_list(void);

/* Bytes of memory that are mapped for them, used or not. While none is made. */
size_t blocks_mapped(void);

/* In a child of fork: libc has forgotten all but the caller's. */
void blocks_fork_child(void);

#endif
