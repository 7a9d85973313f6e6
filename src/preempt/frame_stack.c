// SPDX-License-Identifier: Apache-2.0
/* See frame_stack.h. */
#include "preempt/frame_stack.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "context/stack.h"
#include "os/lock.h"
#include "os/memory.h"

/* The largest frame of today's CPUs (12 KB) fits into half of it; the program's signals may come on top. */
enum { SIZE = 64 * 1024, KEPT = 16 };

/* At its upper end; at the lower one there is an inaccessible page. */
struct frame_stack {
    struct frame_stack *next, *before; /* under lock; of all */
    struct frame_stack *free;          /* under lock; the next free one */
};

static struct {
    struct lock lock;
    struct frame_stack *all, *free; /* under lock, as the next */
    uint32_t count;                 /* of free ones */
} stacks;

static char *memory_of(struct frame_stack *stack) {
    return (char *)(stack + 1) - SIZE;
}

static struct frame_stack *map_one(void) {
    char *memory = memory_map(SIZE, 0);
    if (memory == NULL)
        return NULL;
    memory_forbid(memory, stack_page_size()); /* else it has no guard */
    return (struct frame_stack *)(void *)(memory + SIZE) - 1;
}

static void list_locked(struct frame_stack *stack) {
    stack->next = stacks.all;
    stack->before = NULL;
    if (stacks.all != NULL)
        stacks.all->before = stack;
    stacks.all = stack;
}

static void unlist_locked(struct frame_stack *stack) {
    if (stack->before != NULL)
        stack->before->next = stack->next;
    else
        stacks.all = stack->next;
    if (stack->next != NULL)
        stack->next->before = stack->before;
}

struct frame_stack *frame_stack_take(void) {
    lock_acquire(&stacks.lock);
    struct frame_stack *stack = stacks.free;
    if (stack != NULL) {
        stacks.free = stack->free;
        stacks.count--;
    } else if ((stack = map_one()) != NULL) {
        list_locked(stack);
    }
    lock_release(&stacks.lock);
    return stack;
}

void frame_stack_give(struct frame_stack *stack) {
    lock_acquire(&stacks.lock);
    bool is_kept = stacks.count < KEPT;
    if (is_kept) {
        stack->free = stacks.free;
        stacks.free = stack;
        stacks.count++;
    } else {
        unlist_locked(stack);
    }
    lock_release(&stacks.lock);
    if (!is_kept)
        munmap(memory_of(stack), SIZE);
}

char *frame_stack_place(struct frame_stack *stack, const char *frame, size_t size, size_t align) {
    char *place = (char *)stack - size;
    return place - (uintptr_t)(place - (uintptr_t)frame) % align;
}

void frame_stacks_stop(void) {
    while (stacks.all != NULL) {
        struct frame_stack *stack = stacks.all;
        stacks.all = stack->next;
        munmap(memory_of(stack), SIZE);
    }
    stacks.free = NULL;
    stacks.count = 0;
}

void frame_stacks_fork_child(void) {
    lock_reset(&stacks.lock);
    stacks.all = stacks.free = NULL;
    stacks.count = 0;
}
