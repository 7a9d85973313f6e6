// SPDX-License-Identifier: Apache-2.0
/* See crowd.h. All of it is hints: written without a lock, and two CPUs may share a note. */
#include "kthread/crowd.h"

#include "base/atomic.h"
#include "os/ticks.h"

enum {
    NOTES = 256,    /* CPUs beyond that share */
    SLICE = 500,    /* µs: what is longer was no brief job of ours */
    WINDOW = 20000, /* µs: so long is looked at, at least, from a first slice on */
    OLD = 1000000,  /* µs: a window that began before says nothing of now */
    REST = 32,      /* times that long no thread yields when it was too dear: looking costs 3 % */
};

static struct note {
    _Alignas(64) uint64_t last; /* ticks: the process was seen here */
    uint64_t since;             /* the window began, at the end of another process's slice; 0: it has not */
    uint64_t lost;              /* to others, from then on */
} notes[NOTES];

static struct { _Alignas(64) uint64_t until; /* ticks: no thread yields before; seldom written */ } dense;

/* Windows that are open need not be closed: they end by themselves. */
void crowd_init(void) {
    store_relaxed(&dense.until, arch_ticks());
}

static struct note *note_of(int cpu) {
    return &notes[(unsigned)cpu % NOTES];
}

bool crowd_is_dense(uint64_t now) {
    return (int64_t)(now - load_relaxed(&dense.until)) < 0;
}

void crowd_seen(int cpu, uint64_t now) {
    store_relaxed(&note_of(cpu)->last, now);
}

void crowd_waited(int cpu, uint64_t now) {
    struct note *note = note_of(cpu);
    int64_t gap = (int64_t)(now - load_relaxed(&note->last));
    store_relaxed(&note->last, now);
    if (gap < (int64_t)(SLICE * ticks_per_us()))
        return;
    uint64_t began = load_relaxed(&note->since), all = load_relaxed(&note->lost) + (uint64_t)gap;
    if (began != 0 && now - began < WINDOW * ticks_per_us()) {
        store_relaxed(&note->lost, all);
        return;
    }
    if (began != 0 && now - began < OLD * ticks_per_us() && all > (now - began) / 4 * 3)
        store_relaxed(&dense.until, now + REST * (now - began));
    store_relaxed(&note->since, now);
    store_relaxed(&note->lost, 0);
}
