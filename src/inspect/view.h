// SPDX-License-Identifier: Apache-2.0
/* One look at a process, for threads.c, ticks.c, resources.c and trace.c. */
#ifndef THRUM_INSPECT_VIEW_H
#define THRUM_INSPECT_VIEW_H

#include "inspect/image.h"
#include "inspect/memory.h"

struct view {
    const struct inspect_source *source;
    struct inspect_image image;
    struct front_shape front;
    uint32_t workers;
    const uint64_t *current; /* what each of them runs; NULL: to be read when it is asked for */
};

/* False: this process cannot be looked at, or has no runtime. */
__attribute__((visibility("hidden"))) bool view_open(struct view *view, const struct inspect_source *source);

/* The address of its worker with this number; 0: it cannot be read. */
__attribute__((visibility("hidden"))) uint64_t view_worker(const struct view *view, uint32_t number);

/* What *told has of the ticks of the worker at this address; the rest of it is set. */
__attribute__((visibility("hidden"))) void view_ticks(const struct view *view, uint64_t worker,
                                                      struct inspect_worker *told);

#endif
