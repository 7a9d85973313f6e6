// SPDX-License-Identifier: Apache-2.0
/* Copies of what a process has in its memory. */
#ifndef THRUM_INSPECT_MEMORY_H
#define THRUM_INSPECT_MEMORY_H

#include "inspect/inspect.h"

static inline bool memory_get(const struct inspect_source *source, uint64_t address, void *to, size_t size) {
    return address != 0 && source->read(source->context, address, to, size);
}

/* Copies one field of the struct of this type at `base`, an address or a pointer of the process's, to a place of the
 * same size. */
#define memory_field(source, base, type, field, to)                                                          \
    memory_get((source), (uint64_t)(base) + offsetof(type, field), (to), sizeof *(to))

#endif
