// SPDX-License-Identifier: Apache-2.0
/* What the kernel writes beside a thread control block: the number of the CPU, and what becomes of restartable sequences
 * (rseq(2)). Libc registers that of each thread (2.35); it is of use as long as the block is that of the kernel thread that
 * uses it. Without it libc asks the kernel where sched_getcpu() is called, and programs have no restartable sequences. */
#ifndef THRUM_OS_RSEQ_H
#define THRUM_OS_RSEQ_H

#include <stdint.h>

/* The calling kernel thread has the kernel no longer write to that block, which it began with. The length that was
 * registered; 0: it was not. */
unsigned rseq_give_up(uintptr_t base);

/* ... and has it do so again. `length`: what rseq_give_up returned for that block. */
void rseq_take_up(uintptr_t base, unsigned length);

#endif
