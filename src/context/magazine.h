// SPDX-License-Identifier: Apache-2.0
/* The magazines of all depots (depot.h), from blocks that are unmapped when none of theirs is in use. */
#ifndef THRUM_CONTEXT_MAGAZINE_H
#define THRUM_CONTEXT_MAGAZINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/inside.h"

enum { MAGAZINE_SIZE = 64 };

struct magazine {
    struct magazine *next; /* in the depot, or among the free ones */
    uint64_t since;        /* ns; when it came to the depot */
    uint32_t count;
    bool trimmed; /* the memory of what is in it was given back */
    char *objects[MAGAZINE_SIZE];
};

/* Empty; NULL with no memory. */
SIGSAFE struct magazine *magazine_new(void);
SIGSAFE void magazine_free(struct magazine *magazine);

/* After a burst: unmaps the unused blocks, but for one. */
void magazines_trim(void);

/* In a fork's child: the holder of the lock is gone, and so are the depots that the magazines were in. */
void magazines_fork_child(void);

#endif
