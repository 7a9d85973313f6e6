// SPDX-License-Identifier: Apache-2.0
/* Stacks of units.
 *
 * They come in classes, powers of two from 16 KiB to 1 GiB, each with a depot of its own, so that any size is as
 * cheap as any other. A stack is named by its top, 16-aligned; tops are spread over the sets of the CPU's caches. The
 * lowest page of each is a guard, made by MADV_GUARD_INSTALL where the kernel has it (6.13), which needs no mapping
 * of its own, else by mprotect, which fails at vm.max_map_count: then there is no stack, and spawn answers EAGAIN. */
#ifndef THRUM_CONTEXT_STACK_H
#define THRUM_CONTEXT_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "context/depot.h"

enum {
    STACK_CLASS_BITS = 14, /* of the smallest */
    STACK_CLASSES = 17,
    STACK_CLASS_DEFAULT = 2, /* 64 KiB */
    STACK_CLASS_NONE = 254,  /* a tasklet */
    STACK_CLASS_USER = 255,  /* the user's own memory */
};

static inline size_t stack_class_size(unsigned stack_class) {
    return (size_t)1 << (STACK_CLASS_BITS + stack_class);
}

/* The smallest class of at least `size` bytes; STACK_CLASSES if there is none. */
unsigned stack_class_of(size_t size);

extern struct depot stack_depots[STACK_CLASSES];

void stack_init(void);
void stack_destroy(void);
void stack_fork_child(void);

/* The usable part of a stack reaches down to here; the guard is the page below. */
char *stack_low(const char *top, unsigned stack_class);
size_t stack_guard_size(void);

/* Its memory goes back to the system, which gives zeros when it is touched again. */
void stack_give_back(char *top, unsigned stack_class);

#endif
