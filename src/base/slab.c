// SPDX-License-Identifier: Apache-2.0
/* See slab.h. */
#include "base/slab.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "base/atomic.h"

enum { CHUNK = 64 * 1024, TABLE = 16 * 1024 };

/* Where the chunks are, for slab_give_back_locked. A chunk that found no place in the table is never given back. */
struct slab_chunks {
    struct slab_chunks *next;
    unsigned count;
    struct chunk {
        char *low;
        uint32_t free; /* of its objects; only while pages are given back */
        bool blank;    /* its pages were given back, none of its objects is in the list */
    } chunks[];
};
enum { TABLE_CHUNKS = (TABLE - sizeof(struct slab_chunks)) / sizeof(struct chunk) };

/* mmap through libc: a program's or a test's interposed mmap sees it, and may make it fail. */
static void *map(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void carve(struct slab *slab, char *chunk) {
    for (size_t at = 0; at + slab->object_size <= CHUNK; at += slab->object_size)
        slab_free_locked(slab, chunk + at);
}

static struct chunk *find_blank(const struct slab *slab) {
    for (struct slab_chunks *table = slab->chunks; table != NULL; table = table->next)
        for (unsigned i = 0; i < table->count; i++)
            if (table->chunks[i].blank)
                return &table->chunks[i];
    return NULL;
}

static void note(struct slab *slab, char *low) {
    if (slab->chunks == NULL || slab->chunks->count == TABLE_CHUNKS) {
        struct slab_chunks *table = map(TABLE);
        if (table == NULL)
            return;
        table->next = slab->chunks;
        slab->chunks = table;
    }
    slab->chunks->chunks[slab->chunks->count++] = (struct chunk){.low = low};
}

static void refill(struct slab *slab) {
    struct chunk *blank = find_blank(slab);
    if (blank != NULL) {
        blank->blank = false;
        carve(slab, blank->low);
        return;
    }
    char *low = map(CHUNK);
    if (low == NULL)
        return;
    note(slab, low);
    carve(slab, low);
}

/* Neighbours in the list mostly belong to one chunk: `last` is examined first. */
static struct chunk *chunk_of(const struct slab *slab, const char *object, struct chunk *last) {
    if (last != NULL && (uintptr_t)object - (uintptr_t)last->low < CHUNK)
        return last;
    for (struct slab_chunks *table = slab->chunks; table != NULL; table = table->next)
        for (unsigned i = 0; i < table->count; i++)
            if ((uintptr_t)object - (uintptr_t)table->chunks[i].low < CHUNK)
                return &table->chunks[i];
    return NULL;
}

static void *next_of(const void *object) {
    void *next;
    memcpy(&next, object, sizeof next);
    return next;
}

/* In two walks over the free objects: they are counted, and then those of whole chunks are taken off the list. */
void slab_give_back_locked(struct slab *slab) {
    const uint32_t whole = (uint32_t)(CHUNK / slab->object_size);
    struct chunk *chunk = NULL;
    for (struct slab_chunks *table = slab->chunks; table != NULL; table = table->next)
        for (unsigned i = 0; i < table->count; i++)
            table->chunks[i].free = 0;
    for (char *object = slab->free; object != NULL; object = next_of(object))
        if ((chunk = chunk_of(slab, object, chunk)) != NULL)
            chunk->free++;
    void *object = slab->free;
    for (slab->free = NULL; object != NULL;) {
        void *next = next_of(object);
        chunk = chunk_of(slab, object, chunk);
        if (chunk == NULL || chunk->free != whole)
            slab_free_locked(slab, object);
        object = next;
    }
    for (struct slab_chunks *table = slab->chunks; table != NULL; table = table->next)
        for (unsigned i = 0; i < table->count; i++)
            if (table->chunks[i].free == whole && !table->chunks[i].blank) {
                table->chunks[i].blank = true;
                madvise(table->chunks[i].low, CHUNK, MADV_DONTNEED);
            }
}

/* Not by memset: if the program is instrumented and this is not, ThreadSanitizer sees that, but not the callers'
 * lock, and reports a race with the previous owner of the object. Atomic: a thread with a handle to the previous object may
 * still compare a word of it (sched/call.c). */
static void clear(void *object, size_t size) {
    uint64_t *words = object;
    for (size_t i = 0; i < size / sizeof(uint64_t); i++)
        store_relaxed(&words[i], 0);
}

void *slab_alloc_locked(struct slab *slab) {
    thrum_assert(slab->object_size >= sizeof(void *) && slab->object_size <= CHUNK);
    if (slab->free == NULL)
        refill(slab);
    void *object = slab->free;
    if (object == NULL)
        return NULL;
    memcpy(&slab->free, object, sizeof slab->free);
    clear(object, slab->object_size);
    return object;
}

void slab_free_locked(struct slab *slab, void *object) {
    memcpy(object, &slab->free, sizeof slab->free);
    slab->free = object;
}
