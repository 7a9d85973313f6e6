// SPDX-License-Identifier: Apache-2.0
/* See remains.h. */
#include "context/remains.h"

#include <stdint.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "os/memory.h"

/* Written while there is no runtime; a handler may read it at any time. A range is valid once `bytes` is not 0. */
static struct {
    uintptr_t begin;
    size_t bytes;
} kept[REMAINS_MOST];
static unsigned next; /* the oldest, or an empty one */

void remains_leave(void *memory, size_t bytes) {
    if (!memory_vacate(memory, bytes)) {
        munmap(memory, bytes);
        return;
    }
    size_t oldest_bytes = load_relaxed(&kept[next].bytes);
    if (oldest_bytes != 0) {
        store_relaxed(&kept[next].bytes, 0UL);
        munmap((void *)load_relaxed(&kept[next].begin), oldest_bytes);
    }
    store_relaxed(&kept[next].begin, (uintptr_t)memory);
    store_release(&kept[next].bytes,
                  bytes); /* pairs with the load in remains_have_sigsafe: `begin` is there */
    next = (next + 1) % REMAINS_MOST;
}

size_t remains_bytes(void) {
    size_t sum = 0;
    for (unsigned i = 0; i < REMAINS_MOST; i++)
        sum += load_relaxed(&kept[i].bytes);
    return sum;
}

bool remains_have_sigsafe(const void *address) {
    for (unsigned i = 0; i < REMAINS_MOST; i++) {
        size_t bytes = load_acquire(&kept[i].bytes); /* pairs with the store in remains_leave */
        if ((uintptr_t)address - load_relaxed(&kept[i].begin) < bytes)
            return true;
    }
    return false;
}
