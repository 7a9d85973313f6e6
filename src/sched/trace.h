// SPDX-License-Identifier: Apache-2.0
/* The event trace: what units and workers did and when, kept in memory while the runtime runs and written to a file
 * at its end (runtime/trace_file.h). On request only; the events are in <thrum/trace.h>.
 *
 * It costs nothing where it is off: `watch_on` (context/annotate.h), which the fast paths test for the sake of the
 * tools, stands for the trace as well, and what is called then tells both.
 *
 * Each worker has a ring, written by itself, inside; the newest event overwrites the oldest. External kernel threads
 * share one, under a lock. `count` is stored last, by a release, so that the writer of the file finds that many
 * complete events. At the process's exit workers still run: trace_stop() lets no event begin, but each worker may be
 * in the middle of one, which overwrites the oldest if the ring is full (trace_file.c leaves that one out). Another process
 * may read the rings as they are (inspect/trace.c): it reads `count` before the events and behind them, and keeps what
 * was not overwritten. */
#ifndef THRUM_SCHED_TRACE_H
#define THRUM_SCHED_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/inside.h"
#include "thrum/trace.h"

struct thrum_unit;
struct worker;

struct trace_ring {
    struct thrum_trace_event *events; /* r/o; NULL: there was no memory for them */
    uint64_t size;                    /* of them; r/o */
    uint64_t at;                      /* where the next goes: count % size */
    uint64_t count;                   /* that there ever were */
};

/* Whether events are kept; false again when the file is written. */
extern bool trace_on __attribute__((visibility("hidden")));

/* Before there are workers: each gets a ring of so many events. */
void trace_start(uint64_t events);
/* No event is begun from here on. */
void trace_stop(void);
/* There are no workers any more. */
void trace_forget(void);
/* In a child of fork: what the parent traces is not the child's. */
void trace_fork_child(void);

/* A worker's, with the worker. */
void trace_ring_init(struct trace_ring *ring);
void trace_ring_destroy(struct trace_ring *ring);

/* That of external kernel threads; the object is for inspect/image.c alone. */
const struct trace_ring *trace_outside(void);
extern struct trace_ring trace_outside_ring __attribute__((visibility("hidden")));

/* All inside, but for trace_worker; `worker` is the caller's, or NULL where that is said. */
INSIDE void trace_unit(struct worker *worker, const struct thrum_unit *unit, enum thrum_trace_kind kind,
                       uint64_t argument);

/* It begins here, resumes, leaves or ends, as `kind` says. Loops are not traced. */
INSIDE void trace_run(struct worker *worker, const struct thrum_unit *unit, enum thrum_trace_kind kind);

/* It is about to be put where others find it, for the first time or again. `worker` may be NULL. */
INSIDE void trace_wake(struct worker *worker, const struct thrum_unit *unit);

/* --- off the fast paths ------------------------------------------------------------------------------- */

static inline bool trace_is_on(void) {
    return __builtin_expect(load_relaxed(&trace_on), 0);
}

INSIDE static inline void trace_steal(struct worker *worker, const struct thrum_unit *unit, uint32_t victim) {
    if (trace_is_on())
        trace_unit(worker, unit, THRUM_TRACE_STEAL, victim);
}

/* `worker` may be NULL. */
INSIDE static inline void trace_migrate(struct worker *worker, const struct thrum_unit *unit, uint64_t to) {
    if (trace_is_on())
        trace_unit(worker, unit, THRUM_TRACE_MIGRATE, to);
}

/* The worker itself, on its loop: it searches, parks and so on. */
void trace_worker_slow(struct worker *worker, enum thrum_trace_kind kind);

static inline void trace_worker(struct worker *worker, enum thrum_trace_kind kind) {
    if (trace_is_on())
        trace_worker_slow(worker, kind);
}

#endif
