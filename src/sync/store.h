// SPDX-License-Identifier: Apache-2.0
/* Where a channel's elements lie: a ring in the user's memory, or, without a bound, a chain of blocks that are mapped
 * and unmapped as it grows and shrinks. Oldest first. Everything here is under the channel's SPIN, but for block_new and
 * block_free, which ask the kernel for memory and are therefore called without it. */
#ifndef THRUM_SYNC_STORE_H
#define THRUM_SYNC_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define STORE_UNBOUNDED UINT64_MAX

struct block {
    struct block *next;
    uint64_t bytes;  /* r/o; of the whole, which is mapped */
    char elements[]; /* aligned to 16 */
};

struct store {
    char *ring;        /* r/o; `capacity` elements; NULL without a bound */
    uint64_t capacity; /* r/o; STORE_UNBOUNDED: none */
    uint64_t size;     /* r/o; of an element; 0: they are only counted */
    uint64_t count;
    uint64_t first,
        last; /* places of the oldest and behind the newest: in the ring; in the first and the last block */
    uint64_t per_block;                    /* r/o once there is a block */
    struct block *oldest, *newest, *spare; /* spare: one that was emptied, or none */
};

/* To nowhere, if `to` is NULL. */
static inline void element_copy(void *to, const void *from, uint64_t size) {
    if (to == NULL || size == 0)
        return;
    if (size == sizeof(uint64_t))
        memcpy(to, from, sizeof(uint64_t)); /* one move */
    else
        memcpy(to, from, size);
}

static inline bool store_is_full(const struct store *store) {
    return store->count == store->capacity;
}

/* True: store_put needs a block first (block_new, store_give). */
bool store_lacks_block(struct store *store);
/* Where it is not full and lacks no block. */
void store_put(struct store *store, const void *element);
/* Where it is not empty. Returns a block that the caller must free, or NULL. */
struct block *store_get(struct store *store, void *element);

/* NULL: no memory. */
struct block *block_new(const struct store *store);
/* NULL is nothing to do. */
void block_free(struct block *block);
/* The block, if it is not needed after all, or NULL. */
struct block *store_give(struct store *store, struct block *block);

/* Frees all blocks. */
void store_clear(struct store *store);

#endif
