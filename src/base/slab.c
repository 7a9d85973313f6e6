// SPDX-License-Identifier: Apache-2.0
/* See slab.h. */
#include "base/slab.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"

enum { CHUNK = 64 * 1024 };

/* mmap through libc: a program's or a test's interposed mmap sees it, and may make it fail. */
static void refill(struct slab *slab) {
    char *chunk = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk == MAP_FAILED)
        return;
    for (size_t at = 0; at + slab->object_size <= CHUNK; at += slab->object_size)
        slab_free_locked(slab, chunk + at);
}

/* Not by memset: where the program is instrumented and this is not, ThreadSanitizer sees that, but not the callers' lock, and
 * takes it for a race with who had the object before. */
static void clear(void *object, size_t size) {
    volatile uint64_t *words = object;
    for (size_t i = 0; i < size / sizeof(uint64_t); i++)
        words[i] = 0;
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
