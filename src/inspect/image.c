// SPDX-License-Identifier: Apache-2.0
/* See image.h. */
#include "inspect/image.h"

struct inspect_blocking inspect_blocking;

__attribute__((visibility("default"))) const struct inspect_image thrum_image = {
    .magic = INSPECT_MAGIC,
    .version = THRUM_VERSION,
    .shape = INSPECT_SHAPE,
    .runtime = &runtime,
    .units = &unit_depot,
    .stacks = stack_depots,
    .trace_on = &trace_on,
    .trace_outside = &trace_outside_ring,
    .front = &front_shape,
    .preempt = &preempt,
    .counts = &preempt_counts,
    .blocking = &inspect_blocking,
};
