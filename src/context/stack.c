// SPDX-License-Identifier: Apache-2.0
/* See stack.h.
 *
 * A chunk: one page for the depot's header, then stacks, lowest address first:
 *
 *   | guard page | usable: the class's size, a page for the colour, a page | ...
 *
 * The stride is an odd number of pages and tops are lowered by a colour, so that not all of them share one set of the
 * caches. Not by more than half a page: a unit that waits and has called little touches one page. */
#include "context/stack.h"

#include <sys/mman.h>

enum { PAGE = 4096, SLACK = 3 * PAGE, COLOUR = 512, COLOURS = 4, CHUNK_STACKS = 64 };

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

struct depot stack_depots[STACK_CLASSES];

unsigned stack_class_of(size_t size) {
    unsigned stack_class = 0;
    while (stack_class < STACK_CLASSES && stack_class_size(stack_class) < size)
        stack_class++;
    return stack_class;
}

static size_t stride(size_t size) {
    return size + SLACK;
}

static char *bottom_of(const struct depot_shape *shape, char *chunk, unsigned i) {
    return chunk + PAGE + i * stride(shape->size);
}

static char *top_of(const struct depot_shape *shape, char *chunk, unsigned i) {
    return bottom_of(shape, chunk, i) + stride(shape->size) - (i % COLOURS) * COLOUR;
}

/* From the top: the end of the stack is less than a page above it. */
static char *bottom_below(const char *top, size_t size) {
    uintptr_t end = ((uintptr_t)top + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    return (char *)end - stride(size);
}

static bool guard(char *page) {
    return madvise(page, PAGE, MADV_GUARD_INSTALL) == 0 || mprotect(page, PAGE, PROT_NONE) == 0;
}

static bool guard_all(const struct depot_shape *shape, char *chunk) {
    for (unsigned i = 0; i < shape->per_chunk; i++)
        if (!guard(bottom_of(shape, chunk, i)))
            return false;
    return true;
}

static void give_back(const struct depot_shape *shape, char *top) {
    madvise(bottom_below(top, shape->size) + PAGE, stride(shape->size) - PAGE, MADV_DONTNEED);
}

static size_t power_of_two_above(size_t size) {
    size_t power = PAGE;
    while (power < size)
        power *= 2;
    return power;
}

/* As many as fill the power of two that a chunk is: some 64, of large ones a few. */
static struct depot_shape shape_of(size_t size) {
    unsigned stacks = CHUNK_STACKS;
    while (stacks > 2 && stacks * size > ((size_t)1 << 28))
        stacks /= 2;
    size_t chunk = power_of_two_above(PAGE + stacks * stride(size));
    return (struct depot_shape){.chunk = chunk,
                                .per_chunk = (unsigned)((chunk - PAGE) / stride(size)),
                                .object = top_of,
                                .open = guard_all,
                                .trim = give_back,
                                .size = size};
}

void stack_init(void) {
    for (unsigned i = 0; i < STACK_CLASSES; i++)
        stack_depots[i].shape = shape_of(stack_class_size(i));
}

void stack_destroy(void) {
    for (unsigned i = 0; i < STACK_CLASSES; i++)
        depot_destroy(&stack_depots[i]);
}

char *stack_low(const char *top, unsigned stack_class) {
    return bottom_below(top, stack_class_size(stack_class)) + PAGE;
}
