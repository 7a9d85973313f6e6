// SPDX-License-Identifier: Apache-2.0
/* The rings of the event trace, as another process sees them (inspect.h, sched/trace.h). */
#include "thrum/trace.h"

#include "arch_ticks.h"
#include "inspect/view.h"

uint64_t inspect_ticks(void) {
    return arch_ticks();
}

static bool read_ring(const struct inspect_source *source, uint64_t address, struct inspect_ring *told) {
    struct trace_ring ring;
    if (!memory_get(source, address, &ring, sizeof ring))
        return false;
    told->events = (uint64_t)(uintptr_t)ring.events;
    told->size = ring.size;
    told->count = ring.count;
    return true;
}

bool inspect_rings(const struct inspect_source *source,
                   bool (*tell)(void *context, const struct inspect_ring *ring), void *context) {
    struct view view;
    bool on;
    if (!view_open(&view, source) || !memory_get(source, (uintptr_t)view.image.trace_on, &on, sizeof on) ||
        !on)
        return false;
    for (uint32_t i = 0; i < view.workers; i++) {
        struct inspect_ring ring = {.worker = i};
        uint64_t worker = view_worker(&view, i);
        uint32_t stay = WORKER_LEAVING;
        memory_field(source, worker, struct worker, stay, &stay);
        ring.is_relief = stay == WORKER_RELIEVES;
        if (read_ring(source, worker + offsetof(struct worker, trace), &ring) && !tell(context, &ring))
            return true;
    }
    struct inspect_ring outside = {.worker = THRUM_TRACE_EXTERNAL};
    if (read_ring(source, (uintptr_t)view.image.trace_outside, &outside))
        tell(context, &outside);
    return true;
}
