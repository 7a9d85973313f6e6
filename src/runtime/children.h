// SPDX-License-Identifier: Apache-2.0
/* Programs that the caller starts, by posix_spawn, system, popen or exec.
 *
 * Workers block all signals that are for the program (os/thread.h), and a child inherits the mask of the kernel thread that
 * starts it: it would ignore SIGTERM and an interrupt from the terminal. A child of fork is seen to by init.c; these go past
 * the handlers of pthread_atfork. So the functions are defined here in libc's place. What is called on a kernel thread of the
 * program's, and what has a signal mask of its own choice, is libc's as before. */
#ifndef THRUM_RUNTIME_CHILDREN_H
#define THRUM_RUNTIME_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>

#include "os/signals.h"

/* When a runtime starts: the signals that the kernel thread `tid`, which starts it and remains the program's, blocks. Children
 * block the same. */
void children_start(int32_t tid, sigbits mask);

/* The caller is on a worker, and `mask` is what one blocks: this one or another. *workers: what this one blocks. */
bool children_workers_mask(sigbits mask, sigbits *workers);

/* The caller is on the kernel thread of children_start, and `mask` was read on a worker that is another: that one's, less what
 * the program may have unblocked there. While threads are preempted it is told by the signal of the ticks, which all workers let
 * in, and which a program that blocks most signals blocks, too. *programs: what to install here instead. */
bool children_mask_for_program(sigbits mask, sigbits *programs);

/* In a child of fork, whose thread was on `worker` or NULL: it lets in what its parent would have let in. */
struct worker;
void children_let_signals_in(const struct worker *worker);
void children_fork_child(void);

#endif
