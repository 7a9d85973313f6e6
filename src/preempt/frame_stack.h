// SPDX-License-Identifier: Apache-2.0
/* Stacks for frames of the handler.
 *
 * A preempted unit waits in the middle of the handler, with the frame on its own stack below what it was doing. If
 * that has no room, or the unit stands on a stack of the program's own (a coroutine's, of ucontext or Boost.Context),
 * of which nothing is known, the frame is moved to one of these instead. The unit leaves it as it returns from the
 * handler. So it is free when the next tick's handler begins on that kernel thread, in which the signal was blocked
 * until then.
 *
 * Some free ones are kept. A lost unit has one until the runtime ends. */
#ifndef THRUM_PREEMPT_FRAME_STACK_H
#define THRUM_PREEMPT_FRAME_STACK_H

#include <stddef.h>

#include "base/inside.h"

struct frame_stack;

/* NULL: there is no memory. */
INSIDE struct frame_stack *frame_stack_take(void);
INSIDE void frame_stack_give(struct frame_stack *stack);

/* The place for `size` bytes, as far from a multiple of `align` as `frame` is. */
SIGSAFE char *frame_stack_place(struct frame_stack *stack, const char *frame, size_t size, size_t align);

/* Unmaps all: no unit runs any more. And in a child of fork, whose only thread may stand on one. */
void frame_stacks_stop(void);
void frame_stacks_fork_child(void);

#endif
