// SPDX-License-Identifier: Apache-2.0
/* Stacks of units.
 *
 * They come in classes, powers of two from 16 KiB to 1 GiB, each with a depot of its own, so that any size is as
 * cheap as any other. The default is a class by itself, of a size that is known when the runtime starts: so threads
 * with it need no lookup. A stack is named by its top, 16-aligned; tops are spread over the sets of the CPU's caches.
 * Below each is a guard (ARCH_STACK_GUARD), made by MADV_GUARD_INSTALL where the kernel has it (6.13), which needs no
 * mapping of its own, else by mprotect, which fails at vm.max_map_count: then there is no stack, and spawn returns
 * EAGAIN. */
#ifndef THRUM_CONTEXT_STACK_H
#define THRUM_CONTEXT_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/inside.h"
#include "context/depot.h"

enum {
    STACK_CLASS_DEFAULT = 0,
    STACK_CLASS_BITS = 14, /* of the smallest of the others, which is class 1 */
    STACK_CLASSES = 18,
    STACK_CLASS_NONE = 254, /* a tasklet */
    STACK_CLASS_USER = 255, /* the user's own memory */
};

enum { STACK_SIZE_UNLESS_TOLD = 64 * 1024 };

/* Of the default class; r/o after stack_init. */
extern size_t stack_default_size;

/* Of all but the default class: needs no runtime, and may be asked for while another thread starts one. */
static inline size_t stack_fixed_size(unsigned stack_class) {
    return (size_t)1 << (STACK_CLASS_BITS - 1 + stack_class);
}

static inline size_t stack_class_size(unsigned stack_class) {
    return stack_class == STACK_CLASS_DEFAULT ? stack_default_size : stack_fixed_size(stack_class);
}

/* The smallest class of at least `size` bytes, but not the default one; STACK_CLASSES if there is none. */
unsigned stack_class_of(size_t size);

extern struct depot stack_depots[STACK_CLASSES];

/* `size` is that of a class: the default class's. */
void stack_init(size_t size);
/* Stacks still in use are those of threads that have not ended: see remains.h. */
void stack_destroy(void);
void stack_fork_child(void);

/* The usable part of a stack reaches down to here; the guard is below. */
SIGSAFE char *stack_low(const char *top, unsigned stack_class);
SIGSAFE size_t stack_guard_size(void);
SIGSAFE size_t stack_page_size(void);

/* Its memory goes back to the system, which gives zeros when it is touched again. */
SIGSAFE void stack_give_back(char *top, unsigned stack_class);

#endif
