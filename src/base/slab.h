// SPDX-License-Identifier: Apache-2.0
/* Objects of one size, from anonymous mappings: the library never calls malloc, which may be the program's own
 * and may be in the middle of something. Memory is kept for reuse and never unmapped, so a stale pointer to an
 * object reads an object, or zeros. Callers hold their own lock. */
#ifndef THRUM_BASE_SLAB_H
#define THRUM_BASE_SLAB_H

#include <stddef.h>

struct slab {
    size_t object_size;         /* a multiple of 64, r/o after the first object */
    void *free;                 /* first free object; each begins with a pointer to the next */
    struct slab_chunks *chunks; /* where they came from (slab.c) */
};

#define SLAB_SIZE(bytes) (((bytes) + 63) & ~(size_t)63) /* of an object of so many bytes, for object_size */
#define SLAB_INIT(type)                                                                                      \
    { .object_size = SLAB_SIZE(sizeof(type)), .free = NULL, .chunks = NULL }

/* A zeroed object aligned to 64 bytes, or NULL when the kernel gives no memory. */
void *slab_alloc_locked(struct slab *slab);
void slab_free_locked(struct slab *slab, void *object);

/* Gives the pages of chunks that have only free objects back to the kernel. Takes time in proportion to the number of
 * free objects: for a caller that has freed most of what it had. */
void slab_give_back_locked(struct slab *slab);

#endif
