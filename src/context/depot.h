// SPDX-License-Identifier: Apache-2.0
/* Objects of one kind (descriptors, stacks) that many kernel threads take and give back, after Bonwick's vmem and
 * magazines ("Magazines and Vmem", USENIX 2001).
 *
 * Each worker keeps a magazine of free ones, which only it touches; whole magazines go to and come from the depot.
 * Objects are cut from chunks, which are mapped when nothing else is left. What has been in the depot for a while is
 * trimmed: wholly free chunks are unmapped, of the others each object's memory is given back. So a burst of a million
 * leaves nothing behind.
 *
 * An object is named by an address in its chunk, or by that of its end (stacks). Chunks are aligned to a power of two
 * and begin with a header, so that an object leads to its chunk. */
#ifndef THRUM_CONTEXT_DEPOT_H
#define THRUM_CONTEXT_DEPOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/inside.h"
#include "context/magazine.h"
#include "os/lock.h"

/* What a depot's objects are like; r/o. */
struct depot_shape {
    size_t chunk;       /* bytes, a power of two; chunks are aligned to it */
    unsigned per_chunk; /* objects in one */
    char *(*object)(const struct depot_shape *shape, char *chunk, unsigned i); /* the i-th one's name */
    bool (*open)(const struct depot_shape *shape,
                 char *chunk); /* prepares a new chunk; NULL: nothing to do */
    void (*trim)(const struct depot_shape *shape, char *object); /* gives its memory back; NULL: cannot be */
    size_t size;                                                 /* for the functions above */
};

/* A chunk begins with it. */
struct depot_chunk {
    struct depot_chunk *next;
    uint32_t
        idle; /* under trim_lock: so many of its objects have lain in the depot for long; or depot.c's GOING */
};

/* A worker's. `loaded` is worked on; `spare` is full or empty, so that a worker that alternates at the edge of a
 * magazine does not go to the depot each time. */
struct depot_cache {
    struct magazine *loaded, *spare;
};

struct depot {
    struct depot_shape shape; /* r/o */
    struct lock lock;
    struct magazine *full;      /* under lock; newest first */
    struct depot_chunk *chunks; /* under lock */
    struct lock trim_lock;      /* held while trimming: `idle` of the chunks is the trimmer's */
    struct lock shared_lock;
    struct depot_cache shared; /* under shared_lock: of threads that have none of their own */
};

/* NULL with no memory. */
INSIDE void *depot_get_slow(struct depot *depot, struct depot_cache *cache);
INSIDE void depot_put_slow(struct depot *depot, struct depot_cache *cache, void *object);

INSIDE static inline void *depot_get(struct depot *depot, struct depot_cache *cache) {
    struct magazine *loaded = cache->loaded;
    if (__builtin_expect(loaded == NULL || loaded->count == 0, 0))
        return depot_get_slow(depot, cache);
    return loaded->objects[--loaded->count];
}

INSIDE static inline void depot_put(struct depot *depot, struct depot_cache *cache, void *object) {
    struct magazine *loaded = cache->loaded;
    if (__builtin_expect(loaded == NULL || loaded->count == MAGAZINE_SIZE, 0))
        depot_put_slow(depot, cache, object);
    else
        loaded->objects[loaded->count++] = object;
}

/* The same for an external kernel thread, which has no cache. */
INSIDE void *depot_get_shared(struct depot *depot);
INSIDE void depot_put_shared(struct depot *depot, void *object);

/* Gives what a worker keeps to the depot. */
INSIDE void depot_flush(struct depot *depot, struct depot_cache *cache);

/* Has anything come to a depot that depot_trim may find? See sched/trim.c, which changes it but for NONE -> SURPLUS. */
extern uint32_t depot_surplus;
enum depot_surplus { DEPOT_NONE, DEPOT_SURPLUS, DEPOT_ARMED, DEPOT_LACKING };

/* Called by a worker that has given a magazine while the above says SURPLUS; it may get and put objects. NULL: not. R/o while
 * there are workers. */
extern void (*depot_has_surplus)(void);

/* Gives back the memory of what has lain here since before `before` (ns, CLOCK_MONOTONIC). Unmaps no more than *chunks,
 * which is less by those that it has unmapped; at 0 there may be more. True: some will be due later. */
bool depot_trim(struct depot *depot, uint64_t before, unsigned *chunks);

/* Is there an object for which `is` returns true? It sees all existing objects, unused ones included; objects created
 * meanwhile it may see or not. Nothing is trimmed until this returns. */
bool depot_find(struct depot *depot, bool (*is)(const void *object, const void *what), const void *what);

/* In a fork's child: forgets everything; the caller may stand on an object. Caches must not be used again. */
void depot_fork_child(struct depot *depot);

/* Unmaps all; no thread uses any object. */
void depot_destroy(struct depot *depot);

/* The same, but `leave` gets the chunks in which objects are still in use; NULL: they are unmapped, too. */
void depot_destroy_but(struct depot *depot, void (*leave)(void *memory, size_t bytes));

#endif
