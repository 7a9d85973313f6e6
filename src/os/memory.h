// SPDX-License-Identifier: Apache-2.0
/* Memory from the kernel. libc's functions, but errno stays as it is: a library that says that it does not touch errno
 * must not when it finds no memory either. */
#ifndef THRUM_OS_MEMORY_H
#define THRUM_OS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/inside.h"

/* If not NULL, called with each new mapping: a sanitizer may still know of frames at its addresses (context/annotate.h sets
 * it, before there is any worker). */
extern void (*memory_is_new)(void *memory, size_t bytes) __attribute__((visibility("hidden")));

/* Private and zeroed; `flags`: others for mmap(2). NULL: no memory. */
SIGSAFE void *memory_map(size_t bytes, int flags);

/* The same, at a multiple of `size`, which is a power of two and at least a page. */
SIGSAFE void *memory_map_aligned(size_t size, int flags);

/* False: the kernel does not know it, or will not have it. */
SIGSAFE bool memory_advise(void *memory, size_t bytes, int advice);

/* Neither read nor written from now on. False: the kernel has no room to remember it. */
SIGSAFE bool memory_forbid(void *memory, size_t bytes);

/* Gives the memory of a mapping back, and keeps its addresses reserved: an access faults. False: it is as it was. */
bool memory_vacate(void *memory, size_t bytes);

/* Copied by the kernel. False: not all of it is mapped, or the kernel forbids this. */
bool memory_copy(const void *from, void *to, size_t bytes);

/* Sets a byte for each page: whether it has memory. False: not all of it is mapped. */
bool memory_is_resident(void *memory, size_t bytes, unsigned char *pages);

#endif
