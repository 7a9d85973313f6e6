// SPDX-License-Identifier: Apache-2.0
/* A queue of units that any kernel thread pushes to and pops from: what comes from outside a worker, what a full ring
 * cannot take. Linked through the units themselves, so that a push cannot fail. */
#ifndef THRUM_SCHED_POOL_FIFO_H
#define THRUM_SCHED_POOL_FIFO_H

#include "base/atomic.h"
#include "base/inside.h"
#include "os/lock.h"
#include "sched/unit.h"

struct fifo {
    struct lock lock;
    uint32_t count; /* changed under lock, read by any thread: a hint */
    struct thrum_unit *first, *last;
};

static inline bool fifo_is_empty(const struct fifo *fifo) {
    return load_relaxed(&fifo->count) == 0;
}

INSIDE void fifo_push(struct fifo *fifo, struct thrum_unit *unit);
/* Where it was before fifo_pop. */
SIGSAFE void fifo_push_front(struct fifo *fifo, struct thrum_unit *unit);
INSIDE struct thrum_unit *fifo_pop(struct fifo *fifo);

#endif
