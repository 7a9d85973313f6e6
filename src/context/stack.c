// SPDX-License-Identifier: Apache-2.0
/* See stack.h.
 *
 * A chunk: one page for the depot's header, then stacks, lowest address first:
 *
 *   | guard | usable: the class's size, a page for the colour, sometimes a page | ...
 *
 * The stride is an odd number of pages and tops are lowered by a colour, so that not all of them share one set of the
 * caches. Not by more than half a page: a unit that waits and has called little touches one page.
 *
 * Code that was not compiled for it steps across a guard that is smaller than its frame, and overwrites the stack below.
 * So the guard is as large as the default stack. It costs address space and, for each page of it, eight bytes of page table
 * where the kernel has MADV_GUARD_INSTALL; by mprotect it takes one mapping, whatever its size. Guards are inside a chunk:
 * the number of chunks, which are mappings, stays as it is with small ones. */
#include "context/stack.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arch_stack.h"
#include "base/atomic.h"
#include "base/text.h"
#include "context/annotate.h"
#include "context/remains.h"
#include "os/memory.h"
#include "os/signals.h"

/* CHUNK_STACKS: of the default size 58 fill a chunk of 8 MiB. */
enum { COLOUR = 512, COLOURS = 4, CHUNK_STACKS = 56 };

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

struct depot stack_depots[STACK_CLASSES];
size_t stack_default_size = STACK_SIZE_UNLESS_TOLD;

/* r/o after stack_init. */
static size_t page_size, guard_size;
static bool has_guard_advice;

unsigned stack_class_of(size_t size) {
    unsigned stack_class = STACK_CLASS_DEFAULT + 1;
    while (stack_class < STACK_CLASSES && stack_fixed_size(stack_class) < size)
        stack_class++;
    return stack_class;
}

static size_t page_up(size_t n) {
    return (n + page_size - 1) & ~(page_size - 1);
}

static size_t stride(size_t size) {
    return (page_up(size) + guard_size + page_size) | page_size;
}

static char *bottom_of(const struct depot_shape *shape, char *chunk, unsigned i) {
    return chunk + page_size + i * stride(shape->size);
}

static char *top_of(const struct depot_shape *shape, char *chunk, unsigned i) {
    return bottom_of(shape, chunk, i) + stride(shape->size) - (i % COLOURS) * COLOUR;
}

/* From the top: the end of the stack is less than a page above it. */
static char *bottom_below(const char *top, size_t size) {
    return (char *)page_up((uintptr_t)top) - stride(size);
}

/* Emulators return success for unknown advice: believe it only if the kernel cannot read such a page. (The signal
 * mask that it is asked to take from there has no signals in it, if it can.) */
static bool find_guard_advice(void) {
    char *page = memory_map(page_size, 0);
    if (page == NULL)
        return false;
    bool works = memory_advise(page, page_size, MADV_GUARD_INSTALL) &&
                 sys(SYS_rt_sigprocmask, SIG_BLOCK, page, NULL, sizeof(sigbits)) == -EFAULT;
    munmap(page, page_size);
    return works;
}

static uint32_t said; /* by say_why, once a process */

/* The caller only gets EAGAIN, which does not tell the reason. */
static void say_why(void) {
    if (exchange_relaxed(&said, 1U) == 0)
        text_line("cannot map a guard page below a stack, so no more threads can be created: the process has "
                  "reached vm.max_map_count mappings; raise it with sysctl -w vm.max_map_count=N",
                  NULL, NULL);
}

static bool guard(char *low) {
    bool is_there = (has_guard_advice && memory_advise(low, guard_size, MADV_GUARD_INSTALL)) ||
                    memory_forbid(low, guard_size);
    if (!is_there)
        say_why();
    return is_there;
}

static bool open_chunk(const struct depot_shape *shape, char *chunk) {
    for (unsigned i = 0; i < shape->per_chunk; i++) {
        if (!guard(bottom_of(shape, chunk, i)))
            return false;
        char *low = bottom_of(shape, chunk, i) + guard_size;
        annotate_stack_new((struct annotate_stack){low, (size_t)(top_of(shape, chunk, i) - low)});
    }
    annotate_stacks_new((struct annotate_stack){chunk, shape->chunk});
    return true;
}

static void give_back(const struct depot_shape *shape, char *top) {
    memory_advise(bottom_below(top, shape->size) + guard_size, stride(shape->size) - guard_size,
                  MADV_DONTNEED);
}

static size_t power_of_two_above(size_t size) {
    size_t power = page_size;
    while (power < size)
        power *= 2;
    return power;
}

/* As many as fill the power of two that a chunk is: 56 to 111, of large ones a few. */
static struct depot_shape shape_of(size_t size) {
    unsigned stacks = CHUNK_STACKS;
    while (stacks > 2 && stacks * size > ((size_t)1 << 28))
        stacks /= 2;
    size_t chunk = power_of_two_above(page_size + stacks * stride(size));
    return (struct depot_shape){.chunk = chunk,
                                .per_chunk = (unsigned)((chunk - page_size) / stride(size)),
                                .object = top_of,
                                .open = open_chunk,
                                .trim = give_back,
                                .size = size};
}

void stack_init(size_t size) {
    page_size = (size_t)getpagesize();
    guard_size = page_up(ARCH_STACK_GUARD);
    stack_default_size = size;
    has_guard_advice = !annotate_wants_mapped_guards() && find_guard_advice();
    for (unsigned i = 0; i < STACK_CLASSES; i++)
        stack_depots[i].shape = shape_of(stack_class_size(i));
}

void stack_fork_child(void) {
    store_relaxed(&said, 0);
    for (unsigned i = 0; i < STACK_CLASSES; i++)
        depot_fork_child(&stack_depots[i]);
}

void stack_destroy(void) {
    for (unsigned i = 0; i < STACK_CLASSES; i++)
        depot_destroy_but(&stack_depots[i], remains_leave);
}

char *stack_low(const char *top, unsigned stack_class) {
    return bottom_below(top, stack_class_size(stack_class)) + guard_size;
}

void stack_give_back(char *top, unsigned stack_class) {
    give_back(&stack_depots[stack_class].shape, top);
}

size_t stack_guard_size(void) {
    return guard_size;
}

size_t stack_page_size(void) {
    return page_size;
}
