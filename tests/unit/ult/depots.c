/* SPDX-License-Identifier: Apache-2.0 */
/* See depots.h. */
#include "depots.h"

#include "context/depot.h"
#include "context/remains.h"
#include "context/stack.h"
#include "os/clock.h"
#include "sched/worker.h"

static struct depot_cache caches[STACK_CLASSES];

unsigned stacks_classes(void) {
    return STACK_CLASSES;
}

size_t stacks_size(unsigned stack_class) {
    return stack_class_size(stack_class);
}

unsigned stacks_class_of(size_t size) {
    return stack_class_of(size);
}

void stacks_init(void) {
    stack_init(STACK_SIZE_UNLESS_TOLD);
}

void stacks_destroy(void) {
    for (unsigned i = 0; i < STACK_CLASSES; i++)
        stacks_flush(i);
    stack_destroy();
}

char *stacks_get(unsigned stack_class) {
    return depot_get(&stack_depots[stack_class], &caches[stack_class]);
}

void stacks_put(unsigned stack_class, char *top) {
    depot_put(&stack_depots[stack_class], &caches[stack_class], top);
}

char *stacks_low(const char *top, unsigned stack_class) {
    return stack_low(top, stack_class);
}

void stacks_flush(unsigned stack_class) {
    depot_flush(&stack_depots[stack_class], &caches[stack_class]);
}

bool depots_trim_now(void) {
    unsigned all = UINT32_MAX;
    enter();
    bool more = depot_trim(&unit_depot, UINT64_MAX, &all);
    for (unsigned i = 0; i < STACK_CLASSES; i++)
        more = depot_trim(&stack_depots[i], UINT64_MAX, &all) || more;
    leave();
    return more;
}

/* The header's first word, in depot.c: the next chunk. */
static size_t chunks_of(struct depot *depot) {
    size_t count = 0;
    enter();
    lock_acquire(&depot->lock);
    for (void *chunk = depot->chunks; chunk != NULL; chunk = *(void **)chunk)
        count++;
    lock_release(&depot->lock);
    leave();
    return count;
}

size_t stacks_chunks(unsigned stack_class) {
    return chunks_of(&stack_depots[stack_class]);
}

size_t units_chunks(void) {
    return chunks_of(&unit_depot);
}

size_t reserved_bytes(void) {
    return remains_bytes();
}
