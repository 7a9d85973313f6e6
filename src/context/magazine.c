// SPDX-License-Identifier: Apache-2.0
/* See magazine.h. */
#include "context/magazine.h"

#include <stddef.h>
#include <sys/mman.h>

#include "os/lock.h"
#include "os/memory.h"

enum { BLOCK = 64 * 1024 };

/* Aligned to its size, so that a magazine leads to it. */
struct block {
    struct block *next;
    uint32_t used; /* of its magazines */
    _Alignas(64) struct magazine magazines[];
};

enum { PER_BLOCK = (BLOCK - offsetof(struct block, magazines)) / sizeof(struct magazine) };

static struct {
    struct lock lock;
    struct block *blocks;
    struct magazine *free;
} all;

static struct block *block_of(const struct magazine *magazine) {
    return (struct block *)((uintptr_t)magazine & ~(uintptr_t)(BLOCK - 1));
}

static void put_locked(struct magazine *magazine) {
    magazine->next = all.free;
    all.free = magazine;
}

static void refill_locked(void) {
    struct block *block = memory_map_aligned(BLOCK, 0);
    if (block == NULL)
        return;
    block->next = all.blocks;
    all.blocks = block;
    for (unsigned i = PER_BLOCK; i-- > 0;)
        put_locked(&block->magazines[i]);
}

struct magazine *magazine_new(void) {
    lock_acquire(&all.lock);
    if (all.free == NULL)
        refill_locked();
    struct magazine *magazine = all.free;
    if (magazine != NULL) {
        all.free = magazine->next;
        block_of(magazine)->used++;
        magazine->next = NULL;
        magazine->since = 0;
        magazine->count = 0;
        magazine->trimmed = false;
    }
    lock_release(&all.lock);
    return magazine;
}

void magazine_free(struct magazine *magazine) {
    lock_acquire(&all.lock);
    block_of(magazine)->used--;
    put_locked(magazine);
    lock_release(&all.lock);
}

static void unlist_unused_locked(const struct block *kept) {
    struct magazine **at = &all.free;
    while (*at != NULL) {
        const struct block *block = block_of(*at);
        if (block->used == 0 && block != kept)
            *at = (*at)->next;
        else
            at = &(*at)->next;
    }
}

static struct block *take_unused_locked(const struct block *kept) {
    struct block **at = &all.blocks, *going = NULL;
    while (*at != NULL) {
        struct block *block = *at;
        if (block->used == 0 && block != kept) {
            *at = block->next;
            block->next = going;
            going = block;
        } else {
            at = &block->next;
        }
    }
    return going;
}

void magazines_trim(void) {
    lock_acquire(&all.lock);
    const struct block *kept = all.free != NULL ? block_of(all.free) : NULL;
    unlist_unused_locked(kept);
    struct block *going = take_unused_locked(kept);
    lock_release(&all.lock);
    while (going != NULL) {
        struct block *block = going;
        going = block->next;
        munmap(block, BLOCK);
    }
}

void magazines_fork_child(void) {
    lock_reset(&all.lock);
    all.blocks = NULL;
    all.free = NULL;
}
