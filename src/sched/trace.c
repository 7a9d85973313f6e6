// SPDX-License-Identifier: Apache-2.0
/* See trace.h. */
#include "sched/trace.h"

#include <sys/mman.h>

#include "arch_ticks.h"
#include "base/assert.h"
#include "base/text.h"
#include "os/lock.h"
#include "os/memory.h"
#include "sched/upward.h"
#include "sched/worker.h"

_Static_assert(_Alignof(struct thrum_unit) == THRUM_TRACE_KIND_MASK + 1, "the kind is beside its address");
_Static_assert(sizeof(struct thrum_trace_event) == 24, "<thrum/trace.h>");

bool trace_on;
static uint64_t ring_size; /* r/o while trace_on */

static struct lock outside_lock;
struct trace_ring trace_outside_ring; /* under outside_lock */

/* --- life --------------------------------------------------------------------------------------------- */

/* Read plainly on all fast paths, where an atomic load takes an instruction more; a change counts where it is seen. Nothing is
 * written where nothing changes, as under TSan, which would report it. */
static void set_watch(bool on) {
    if (watch_on != on)
        store_relaxed(&watch_on, on);
}

void trace_start(uint64_t events) {
    ring_size = events;
    store_relaxed(&trace_on, true);
    set_watch(true);
    trace_ring_init(&trace_outside_ring);
}

/* `watch_on` stays: all that it leads to looks further. */
void trace_stop(void) {
    store_relaxed(&trace_on, false);
}

void trace_forget(void) {
    thrum_assert(load_relaxed(&runtime.count) == 0); /* watch_on is not off again while there are workers */
    trace_stop();
    trace_ring_destroy(&trace_outside_ring);
    set_watch(annotate_on);
}

void trace_fork_child(void) {
    trace_stop();
    lock_reset(&outside_lock);
    set_watch(annotate_on);
}

/* What is never written to takes no memory. */
void trace_ring_init(struct trace_ring *ring) {
    *ring = (struct trace_ring){.size = ring_size};
    if (!trace_is_on())
        return;
    ring->events = memory_map(ring_size * sizeof *ring->events, MAP_NORESERVE);
    if (ring->events == NULL)
        text_line("no memory to trace a worker, which the trace leaves out; set a smaller THRUM_TRACE_EVENTS",
                  NULL, NULL);
}

void trace_ring_destroy(struct trace_ring *ring) {
    if (ring->events != NULL)
        munmap(ring->events, ring->size * sizeof *ring->events);
    *ring = (struct trace_ring){.events = NULL};
}

const struct trace_ring *trace_outside(void) {
    return &trace_outside_ring;
}

/* --- events ------------------------------------------------------------------------------------------- */

static void put(struct trace_ring *ring, uint64_t ticks, const struct thrum_unit *unit,
                enum thrum_trace_kind kind, uint64_t argument) {
    if (ring->events == NULL)
        return;
    ring->events[ring->at] = (struct thrum_trace_event){ticks, (uint64_t)unit | kind, argument};
    ring->at = ring->at + 1 == ring->size ? 0 : ring->at + 1;
    store_release(&ring->count, ring->count + 1); /* pairs with trace_file.c */
}

void trace_unit(struct worker *worker, const struct thrum_unit *unit, enum thrum_trace_kind kind,
                uint64_t argument) {
    if (!trace_is_on())
        return;
    if (worker != NULL) {
        put(&worker->trace, arch_ticks(), unit, kind, argument);
        return;
    }
    lock_acquire(&outside_lock);
    put(&trace_outside_ring, arch_ticks(), unit, kind, argument);
    lock_release(&outside_lock);
}

void trace_worker_slow(struct worker *worker, enum thrum_trace_kind kind) {
    enter();
    trace_unit(worker, NULL, kind, 0);
    leave();
}

static bool has_name(const struct thrum_unit *unit) {
    return load_relaxed(&unit->extras) && load_relaxed(&unit->name[0]) != 0;
}

static bool begins(enum thrum_trace_kind kind) {
    return kind == THRUM_TRACE_BEGIN || kind == THRUM_TRACE_RESUME || kind == THRUM_TRACE_TASKLET;
}

/* The name when it leaves: mostly it gives itself one. */
void trace_run(struct worker *worker, const struct thrum_unit *unit, enum thrum_trace_kind kind) {
    if (!trace_is_on() || load_relaxed(&unit->kind) == UNIT_LOOP)
        return;
    bool comes = begins(kind);
    trace_unit(worker, unit, kind, comes ? (uint64_t)(uintptr_t)own_function(unit) : 0);
    if (!comes && trace_is_on() && has_name(unit)) /* again: at most one event is on its way when it stops */
        put(&worker->trace, load_relaxed(&unit->name[0]), unit, THRUM_TRACE_NAME,
            load_relaxed(&unit->name[1]));
}

void trace_wake(struct worker *worker, const struct thrum_unit *unit) {
    if (!trace_is_on())
        return;
    bool is_new = load_relaxed(&unit->sp) == UNIT_NEW;
    if (worker != NULL && worker_is_solo(worker))
        worker = NULL; /* it has no ring */
    trace_unit(worker, unit, is_new ? THRUM_TRACE_SPAWN : THRUM_TRACE_WAKE,
               is_new ? (uint64_t)(uintptr_t)own_function(unit) : 0);
}
