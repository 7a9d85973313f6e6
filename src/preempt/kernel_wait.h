// SPDX-License-Identifier: Apache-2.0
/* At a tick: does the present unit wait in the kernel? Where it cannot be preempted, or whatever it waits for comes after it in
 * the order of a scheduler, another worker must run that (relief.c). If it is preempted, it is found there again when it
 * resumes. All by the handler, on the worker; `context`: that of its frame. */
#ifndef THRUM_PREEMPT_KERNEL_WAIT_H
#define THRUM_PREEMPT_KERNEL_WAIT_H

#include <stdbool.h>
#include <ucontext.h>

#include "base/inside.h"

struct tick;
struct worker;

/* It resumes its call, and may wait for long: must it be asked soon whether it still does? A call that answers EINTR
 * is made again by the program, and its timeout, if relative, begins anew: such a call ends only in a turn of a whole
 * slice. */
INSIDE bool kernel_wait_asks_soon(struct worker *worker, const ucontext_t *context);

/* The present unit resumes there: notes how its stack is. */
SIGSAFE void kernel_wait_remember(struct tick *tick, const ucontext_t *context, bool is_on_own_stack);
/* It still is so. */
SIGSAFE bool kernel_wait_stands(const struct tick *tick, const ucontext_t *context);

/* A tick has not preempted the present unit. `cannot`: and none will, as long as the unit is there. */
SIGSAFE void kernel_wait_look(struct worker *worker, const ucontext_t *context, bool cannot);

/* It was preempted where it waits in the kernel, perhaps for a unit that comes after it in the order of its
 * scheduler. */
SIGSAFE void kernel_wait_preempted(struct worker *worker, const ucontext_t *context);

#endif
