// SPDX-License-Identifier: Apache-2.0
/* See depot.h. */
#include "context/depot.h"

#include <sys/mman.h>

#include "base/assert.h"
#include "os/clock.h"
#include "os/memory.h"

#define GOING UINT32_MAX

static struct depot_chunk *chunk_of(const struct depot *depot, const char *object) {
    return (struct depot_chunk *)(((uintptr_t)object - 1) & ~(depot->shape.chunk - 1));
}

/* --- chunks ------------------------------------------------------------------------------------------- */

static struct depot_chunk *chunk_new(struct depot *depot) {
    char *chunk = memory_map_aligned(depot->shape.chunk, MAP_NORESERVE);
    if (chunk == NULL)
        return NULL;
    if (depot->shape.open != NULL && !depot->shape.open(&depot->shape, chunk)) {
        munmap(chunk, depot->shape.chunk);
        return NULL;
    }
    struct depot_chunk *header = (struct depot_chunk *)(void *)chunk;
    lock_acquire(&depot->lock);
    header->next = depot->chunks;
    depot->chunks = header;
    lock_release(&depot->lock);
    return header;
}

/* --- magazines ---------------------------------------------------------------------------------------- */

uint32_t depot_surplus;
void (*depot_has_surplus)(void);

static void put_first(struct depot *depot, struct magazine *magazine) {
    lock_acquire(&depot->lock);
    magazine->next = depot->full;
    depot->full = magazine;
    lock_release(&depot->lock);
}

static void give(struct depot *depot, struct magazine *magazine) {
    magazine->since = clock_monotonic_coarse_ns();
    magazine->trimmed = false;
    put_first(depot, magazine);
    uint32_t none = DEPOT_NONE;
    if (load_relaxed(&depot_surplus) == DEPOT_NONE)
        cas_acq_rel(&depot_surplus, &none, DEPOT_SURPLUS); /* pairs with run and arm of sched/trim.c */
}

/* Whose objects have no memory yet. */
static void give_untouched(struct depot *depot, struct magazine *magazine) {
    magazine->since = clock_monotonic_coarse_ns();
    magazine->trimmed = true;
    put_first(depot, magazine);
}

static struct magazine *take(struct depot *depot) {
    lock_acquire(&depot->lock);
    struct magazine *magazine = depot->full;
    if (magazine != NULL)
        depot->full = magazine->next;
    lock_release(&depot->lock);
    return magazine;
}

static bool is_empty(const struct magazine *magazine) {
    return magazine == NULL || magazine->count == 0;
}

/* A new chunk's objects: into the empty magazine, and what does not fit into others for the depot. */
static bool fill(struct depot *depot, struct magazine *empty) {
    struct depot_chunk *chunk = chunk_new(depot);
    if (chunk == NULL)
        return false;
    struct magazine *magazine = empty;
    for (unsigned i = 0; i < depot->shape.per_chunk; i++) {
        if (magazine->count == MAGAZINE_SIZE) {
            struct magazine *next = magazine_new();
            if (next == NULL)
                break; /* the rest of the chunk stays unused, and keeps it from being unmapped */
            if (magazine != empty)
                give_untouched(depot, magazine);
            magazine = next;
        }
        magazine->objects[magazine->count++] = depot->shape.object(&depot->shape, (char *)chunk, i);
    }
    if (magazine != empty)
        give_untouched(depot, magazine);
    return true;
}

void *depot_get_slow(struct depot *depot, struct depot_cache *cache) {
    if (cache->loaded == NULL && (cache->loaded = magazine_new()) == NULL)
        return NULL;
    if (!is_empty(cache->spare)) {
        struct magazine *full = cache->spare;
        cache->spare = cache->loaded;
        cache->loaded = full;
    } else {
        struct magazine *full = take(depot);
        if (full == NULL) {
            if (!fill(depot, cache->loaded))
                return NULL;
        } else {
            if (cache->spare == NULL)
                cache->spare = cache->loaded;
            else
                magazine_free(cache->loaded);
            cache->loaded = full;
        }
    }
    return cache->loaded->objects[--cache->loaded->count];
}

/* Without memory for a magazine the object is lost, and its chunk with it, until the depot is destroyed. */
void depot_put_slow(struct depot *depot, struct depot_cache *cache, void *object) {
    if (cache->loaded != NULL && is_empty(cache->spare) && cache->spare != NULL) {
        struct magazine *empty = cache->spare;
        cache->spare = cache->loaded;
        cache->loaded = empty;
    } else {
        struct magazine *empty = magazine_new();
        if (empty == NULL)
            return;
        if (cache->loaded != NULL) {
            if (cache->spare == NULL)
                cache->spare = cache->loaded;
            else
                give(depot, cache->loaded);
        }
        cache->loaded = empty;
    }
    cache->loaded->objects[cache->loaded->count++] = object;
    if (load_relaxed(&depot_surplus) == DEPOT_SURPLUS && depot_has_surplus != NULL && cache != &depot->shared)
        depot_has_surplus();
}

static void flush_one(struct depot *depot, struct magazine *magazine) {
    if (magazine == NULL)
        return;
    if (magazine->count > 0)
        give(depot, magazine);
    else
        magazine_free(magazine);
}

void depot_flush(struct depot *depot, struct depot_cache *cache) {
    flush_one(depot, cache->loaded);
    flush_one(depot, cache->spare);
    *cache = (struct depot_cache){NULL, NULL};
}

void *depot_get_shared(struct depot *depot) {
    lock_acquire(&depot->shared_lock);
    void *object = depot_get(depot, &depot->shared);
    lock_release(&depot->shared_lock);
    return object;
}

void depot_put_shared(struct depot *depot, void *object) {
    lock_acquire(&depot->shared_lock);
    depot_put(depot, &depot->shared, object);
    lock_release(&depot->shared_lock);
}

/* --- giving back -------------------------------------------------------------------------------------- */

/* Those that have been here since before `before`: the list is newest first, so they are its end. */
static struct magazine *take_old_locked(struct depot *depot, uint64_t before) {
    struct magazine **at = &depot->full;
    while (*at != NULL && (*at)->since >= before)
        at = &(*at)->next;
    struct magazine *old = *at;
    *at = NULL;
    return old;
}

static void count_idle(struct depot *depot, struct magazine *old) {
    for (struct depot_chunk *chunk = depot->chunks; chunk != NULL; chunk = chunk->next)
        chunk->idle = 0;
    for (; old != NULL; old = old->next)
        for (unsigned i = 0; i < old->count; i++)
            chunk_of(depot, old->objects[i])->idle++;
}

/* Those chunks that are idle as a whole and may go are off the list, and marked by GOING. */
static struct depot_chunk *take_idle_locked(struct depot *depot, unsigned *chunks) {
    struct depot_chunk **at = &depot->chunks, *going = NULL;
    while (*at != NULL && *chunks > 0) {
        struct depot_chunk *chunk = *at;
        if (chunk->idle == depot->shape.per_chunk) {
            *at = chunk->next;
            chunk->next = going;
            chunk->idle = GOING;
            going = chunk;
            --*chunks;
        } else {
            at = &chunk->next;
        }
    }
    return going;
}

/* Keeps those whose chunk stays, and gives back their memory, unless their chunk could be unmapped the next time. */
static void sift(struct depot *depot, struct magazine *magazine) {
    unsigned kept = 0;
    bool all = true;
    for (unsigned i = 0; i < magazine->count; i++) {
        char *object = magazine->objects[i];
        uint32_t idle = chunk_of(depot, object)->idle;
        if (idle == GOING)
            continue;
        magazine->objects[kept++] = object;
        if (idle == depot->shape.per_chunk)
            all = false;
        else if (depot->shape.trim != NULL && !magazine->trimmed)
            depot->shape.trim(&depot->shape, object);
    }
    magazine->count = kept;
    magazine->trimmed |= all;
}

static bool some_are_touched_locked(const struct depot *depot) {
    for (const struct magazine *magazine = depot->full; magazine != NULL; magazine = magazine->next)
        if (!magazine->trimmed)
            return true;
    return false;
}

/* Back to the end of the list, where they came from: what has come meanwhile is newer. True: some are empty, and not
 * needed any more. */
static bool put_back_locked(struct depot *depot, struct magazine *old) {
    struct magazine **at = &depot->full;
    bool some_are_empty = false;
    while (*at != NULL)
        at = &(*at)->next;
    while (old != NULL) {
        struct magazine *next = old->next;
        if (old->count == 0) {
            magazine_free(old);
            some_are_empty = true;
        } else {
            *at = old;
            at = &old->next;
        }
        old = next;
    }
    *at = NULL;
    return some_are_empty;
}

bool depot_trim(struct depot *depot, uint64_t before, unsigned *chunks) {
    lock_acquire(&depot->trim_lock);
    lock_acquire(&depot->lock);
    struct magazine *old = take_old_locked(depot, before);
    bool more = some_are_touched_locked(depot);
    count_idle(depot, old);
    struct depot_chunk *going = take_idle_locked(depot, chunks);
    lock_release(&depot->lock);
    for (struct magazine *magazine = old; magazine != NULL; magazine = magazine->next)
        sift(depot, magazine);
    while (going != NULL) {
        struct depot_chunk *chunk = going;
        going = chunk->next;
        munmap(chunk, depot->shape.chunk);
    }
    lock_acquire(&depot->lock);
    bool some_are_empty = put_back_locked(depot, old);
    lock_release(&depot->lock);
    if (some_are_empty)
        magazines_trim();
    lock_release(&depot->trim_lock);
    return more;
}

/* A chunk that is found here stays: only the trimmer removes some. */
bool depot_find(struct depot *depot, bool (*is)(const void *object, const void *what), const void *what) {
    bool found = false;
    lock_acquire(&depot->trim_lock);
    lock_acquire(&depot->lock);
    struct depot_chunk *chunk = depot->chunks;
    lock_release(&depot->lock);
    for (; chunk != NULL && !found; chunk = chunk->next)
        for (unsigned i = 0; i < depot->shape.per_chunk && !found; i++)
            found = is(depot->shape.object(&depot->shape, (char *)chunk, i), what);
    lock_release(&depot->trim_lock);
    return found;
}

static void destroy_chunks(struct depot *depot, void (*leave)(void *memory, size_t bytes)) {
    for (struct depot_chunk *chunk = depot->chunks; chunk != NULL;) {
        struct depot_chunk *next = chunk->next;
        if (leave != NULL && chunk->idle < depot->shape.per_chunk)
            leave(chunk, depot->shape.chunk);
        else
            munmap(chunk, depot->shape.chunk);
        chunk = next;
    }
    depot->chunks = NULL;
}

/* Unchecked: no other thread has a part in it any more. */
INSIDE_UNCHECKED void depot_destroy_but(struct depot *depot, void (*leave)(void *memory, size_t bytes)) {
    depot_flush(depot, &depot->shared);
    count_idle(depot, depot->full);
    for (struct magazine *magazine = depot->full; magazine != NULL;) {
        struct magazine *next = magazine->next;
        magazine_free(magazine);
        magazine = next;
    }
    depot->full = NULL;
    destroy_chunks(depot, leave);
    magazines_trim();
}

void depot_destroy(struct depot *depot) {
    depot_destroy_but(depot, NULL);
}

void depot_fork_child(struct depot *depot) {
    magazines_fork_child();
    lock_reset(&depot->lock);
    lock_reset(&depot->trim_lock);
    lock_reset(&depot->shared_lock);
    depot->shared = (struct depot_cache){NULL, NULL};
    depot->full = NULL;
    depot->chunks = NULL;
}
