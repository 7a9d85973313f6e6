// SPDX-License-Identifier: Apache-2.0
/* See store.h. */
#include "sync/store.h"

#include <sys/mman.h>

#include "os/memory.h"

enum { BLOCK_BYTES = 64 * 1024, PAGE = 4096 };

/* --- blocks ------------------------------------------------------------------------------------------- */

static size_t block_bytes(const struct store *store) {
    size_t least = sizeof(struct block) + store->size;
    return least <= BLOCK_BYTES ? BLOCK_BYTES : (least + PAGE - 1) / PAGE * PAGE;
}

struct block *block_new(const struct store *store) {
    size_t bytes = block_bytes(store);
    struct block *block = memory_map(bytes, 0);
    if (block == NULL)
        return NULL;
    block->bytes = bytes;
    return block;
}

void block_free(struct block *block) {
    if (block != NULL)
        munmap(block, block->bytes);
}

struct block *store_give(struct store *store, struct block *block) {
    if (store->spare != NULL)
        return block;
    store->spare = block;
    return NULL;
}

void store_clear(struct store *store) {
    block_free(store->spare);
    for (struct block *block = store->oldest, *next; block != NULL; block = next) {
        next = block->next;
        block_free(block);
    }
    store->oldest = store->newest = store->spare = NULL;
    store->count = 0;
}

/* --- the chain ---------------------------------------------------------------------------------------- */

static bool is_chain(const struct store *store) {
    return store->capacity == STORE_UNBOUNDED && store->size != 0;
}

static bool newest_is_full(const struct store *store) {
    return store->newest == NULL || store->last == store->per_block;
}

bool store_lacks_block(struct store *store) {
    if (!is_chain(store) || store->spare != NULL || !newest_is_full(store))
        return false;
    store->per_block = (block_bytes(store) - sizeof(struct block)) / store->size;
    return true;
}

static void *chain_put(struct store *store) {
    if (newest_is_full(store)) {
        struct block *block = store->spare;
        store->spare = NULL;
        block->next = NULL;
        if (store->newest != NULL)
            store->newest->next = block;
        else
            store->oldest = block;
        store->newest = block;
        store->last = 0;
    }
    return store->newest->elements + store->last++ * store->size;
}

static void *chain_first(const struct store *store) {
    return store->oldest->elements + store->first * store->size;
}

/* The oldest element has been copied. */
static struct block *chain_drop(struct store *store) {
    if (++store->first < store->per_block && store->count > 0)
        return NULL;
    struct block *empty = store->oldest;
    store->first = 0;
    store->oldest = empty->next;
    if (store->oldest == NULL)
        store->newest = NULL;
    return store_give(store, empty);
}

/* --- either ------------------------------------------------------------------------------------------- */

static void *ring_at(const struct store *store, uint64_t place) {
    return store->ring + place * store->size;
}

static uint64_t ring_next(const struct store *store, uint64_t place) {
    return place + 1 == store->capacity ? 0 : place + 1;
}

void store_put(struct store *store, const void *element) {
    store->count++;
    if (is_chain(store)) {
        element_copy(chain_put(store), element, store->size);
    } else if (store->size != 0) {
        element_copy(ring_at(store, store->last), element, store->size);
        store->last = ring_next(store, store->last);
    }
}

struct block *store_get(struct store *store, void *element) {
    store->count--;
    if (is_chain(store)) {
        element_copy(element, chain_first(store), store->size);
        return chain_drop(store);
    }
    if (store->size != 0) {
        element_copy(element, ring_at(store, store->first), store->size);
        store->first = ring_next(store, store->first);
    }
    return NULL;
}
