// SPDX-License-Identifier: Apache-2.0
/* Where libthrum has what inspect.h reads, and its layout: exported, so that it is found from outside by one symbol.
 * A reader was built from the same declarations, or sees by `shape` that it was not. */
#ifndef THRUM_INSPECT_IMAGE_H
#define THRUM_INSPECT_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "context/depot.h"
#include "preempt/preempt.h"
#include "sched/front.h"
#include "sched/trace.h"
#include "sched/worker.h"
#include "sync/mutex.h"
#include "sync/rwlock.h"

#define INSPECT_MAGIC "thrum\n\1"

#define INSPECT_SHAPE                                                                                        \
    {                                                                                                        \
        sizeof(struct thrum_unit), sizeof(struct worker), offsetof(struct thrum_unit, awaits),               \
            offsetof(struct thrum_unit, kind), offsetof(struct thrum_unit, pool),                            \
            offsetof(struct thrum_unit, name), offsetof(struct worker, deque), offsetof(struct worker, tid), \
            offsetof(struct worker, stay), offsetof(struct worker, counters),                                \
            offsetof(struct runtime, count), offsetof(struct runtime, primary),                              \
            offsetof(struct depot, chunks), sizeof(struct depot_chunk), offsetof(struct mutex, owner),       \
            offsetof(struct rwlock, writer), UNIT_SOLO, AWAITS_KINDS, STACK_CLASSES, WORKERS_MAX,            \
            offsetof(struct carrier, tid), offsetof(struct worker, trace), sizeof(struct trace_ring),        \
            sizeof(struct front_shape), offsetof(struct worker, as_new), offsetof(struct worker, tick),      \
            sizeof(struct tick), offsetof(struct tick, last), offsetof(struct tick, thread),                 \
            sizeof(struct preempt), sizeof(struct preempt_counts), sizeof(struct inspect_blocking)           \
    }

/* The kernel threads of thrum_blocking: how many there are, and how many of them wait for a call. By src/runtime/blocking.c,
 * under its lock. */
extern struct inspect_blocking { uint32_t threads, idle; } inspect_blocking;

struct inspect_image {
    char magic[8];
    char version[16];
    uint32_t shape[32];
    const struct runtime *runtime;
    const struct depot *units;
    const struct depot *stacks; /* STACK_CLASSES of them */
    const bool *trace_on;
    const struct trace_ring *trace_outside;
    const struct front_shape *front;
    const struct preempt *preempt;
    const struct preempt_counts *counts;
    const struct inspect_blocking *blocking;
};

extern const struct inspect_image thrum_image;

#endif
