// SPDX-License-Identifier: Apache-2.0
/* The stack of the present unit, and the handlers of the program's that have interrupted it there. By the handler of ticks
 * (handler.c), which preempts no handler of the program's. */
#ifndef THRUM_PREEMPT_OWN_STACK_H
#define THRUM_PREEMPT_OWN_STACK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include "base/inside.h"
#include "os/signals.h"
#include "preempt/preempt.h"
#include "sched/unit.h"

static inline bool unit_is_thread(const struct thrum_unit *unit) {
    enum unit_kind kind = (enum unit_kind)load_relaxed(&unit->kind);
    return kind == UNIT_ULT || kind == UNIT_BOUND || kind == UNIT_POOLED;
}

/* The signal mask that the kernel has saved with a frame. */
static inline sigbits frame_whole_mask(const ucontext_t *context) {
    sigbits mask;
    memcpy(&mask, &context->uc_sigmask, sizeof mask);
    return mask;
}

/* Without the signal of ticks. */
static inline sigbits frame_mask(const ucontext_t *context) {
    return frame_whole_mask(context) & ~signals_bit(preempt.settings.signal);
}

/* By the thread that becomes the primary: its kernel thread's stack. */
void own_stack_find_primary(void);

struct own_stack {
    char *low, *top; /* NULL: it has none */
};
SIGSAFE struct own_stack own_stack_of(const struct thrum_unit *unit);

/* Where the unit's own stack begins, if the stack pointer is on it; else 0. */
SIGSAFE uintptr_t own_stack_top(const struct thrum_unit *unit, uintptr_t sp);

/* Is a handler of the program's on that stack, which runs with `mask`? Takes time in proportion to the depth of the stack, up
 * to 64 KiB: for these 1 us where they are in the cache (docs/internals/preemption-cost.md). */
SIGSAFE bool own_stack_has_handler(uintptr_t sp, uintptr_t top, sigbits mask);

/* By handlers: a frame that was made for one. Is it not where such a kernel's are, they may be elsewhere from here on. */
SIGSAFE void own_stack_learn_frame(const char *frame);

#endif
