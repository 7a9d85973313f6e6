// SPDX-License-Identifier: Apache-2.0
/* Where descriptors come from. Data alone, so that what takes one depends on nothing else. */
#include "sched/unit.h"

#include "context/depot.h"
#include "sched/worker.h"

static char *unit_at(const struct depot_shape *shape, char *chunk, unsigned i) {
    return chunk + shape->size * (i + 1);
}

struct depot unit_depot = {.shape = {.chunk = 64 * 1024,
                                     .per_chunk = 64 * 1024 / sizeof(struct thrum_unit) - 1,
                                     .object = unit_at,
                                     .size = sizeof(struct thrum_unit)}};
