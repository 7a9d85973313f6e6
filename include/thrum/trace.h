// SPDX-License-Identifier: Apache-2.0
/* The file that libthrum writes where the environment has THRUM_TRACE=FILE: what units (user-level threads, tasklets)
 * and workers did, and when. `thrum trace` turns it into what Perfetto shows; this is for those who read it themselves.
 *
 * It consists of one section for each runtime that the process had, one behind the other. A section, all in the byte
 * order of the machine and with nothing in between:
 *
 *   struct thrum_trace_header
 *   for each of `rings`:   struct thrum_trace_ring, and `events` times struct thrum_trace_event, oldest first
 *   `maps_bytes` bytes:    the text of /proc/self/maps when it was written, to find names of functions with
 *
 * A descriptor serves many units one after another: a unit is its address from a SPAWN or BEGIN to the next END. Of the
 * oldest events the beginning may be lost, and then a unit is first seen going on.
 *
 *     struct thrum_trace_header header;
 *     FILE *file = fopen("run.trace", "rb");
 *     if (file != NULL && fread(&header, sizeof header, 1, file) == 1 && header.version == THRUM_TRACE_VERSION)
 *         printf("process %llu, %u rings\n", (unsigned long long)header.pid, header.rings);
 */
#ifndef THRUM_TRACE_H
#define THRUM_TRACE_H

#include <stdint.h>

#define THRUM_TRACE_MAGIC   "thrumtrc" /* eight bytes, and no more of it in the file */
#define THRUM_TRACE_VERSION 1
#define THRUM_TRACE_OUTSIDE 0xffffffffU /* in a worker's place: all threads that are no workers */

struct thrum_trace_moment {
    uint64_t ticks; /* of the counter that events are stamped with */
    uint64_t ns;    /* CLOCK_MONOTONIC */
};

struct thrum_trace_header {
    char magic[8];
    uint32_t version;                     /* THRUM_TRACE_VERSION */
    uint32_t header_bytes;                /* sizeof(struct thrum_trace_header) */
    uint32_t event_bytes;                 /* sizeof(struct thrum_trace_event) */
    uint32_t rings;                       /* one for each worker, and one for all other threads */
    uint64_t pid;                         /* of the process */
    struct thrum_trace_moment begin, end; /* of the runtime: what is between is found by proportion */
    uint64_t maps_bytes;
};

struct thrum_trace_ring {
    uint32_t worker; /* its number, or THRUM_TRACE_OUTSIDE */
    uint32_t relief; /* 1: it is none of the program's, but relieves those (thrum-preemption(7)) */
    uint64_t events;
    uint64_t lost; /* older ones, that these have overwritten */
};

struct thrum_trace_event {
    uint64_t ticks;
    uint64_t what; /* a unit's address, or 0, and in its six low bits an enum thrum_trace_kind */
    uint64_t argument;
};

enum thrum_trace_kind {
    /* A unit runs on this worker from now on. `argument`: its function; 0: what called thrum_init. */
    THRUM_TRACE_BEGIN = 1, /* for the first time */
    THRUM_TRACE_GO_ON = 2,
    /* It leaves the worker, */
    THRUM_TRACE_WAIT = 3,     /* as it waits for something */
    THRUM_TRACE_YIELD = 4,    /* to give way */
    THRUM_TRACE_BEGET = 5,    /* to what it spawned, which begins here now; it waits in the queue */
    THRUM_TRACE_MOVE = 6,     /* for the place that it migrates to */
    THRUM_TRACE_HOST = 7,     /* to what it runs, as a scheduler */
    THRUM_TRACE_END = 8,      /* for good */
    THRUM_TRACE_PREEMPT = 20, /* as its slice is over: it was interrupted */
    /* A tasklet runs, on the stack of whatever runs here, or on the worker's own. `argument`: its function. */
    THRUM_TRACE_TASKLET = 9,
    THRUM_TRACE_TASKLET_END = 10,
    /* The name of the unit of the event before: not a moment, but eight bytes of it in `ticks` and in `argument`. */
    THRUM_TRACE_NAME = 11,
    /* Here a unit is made to run, which begins later; `argument`: its function. Or it may go on. */
    THRUM_TRACE_SPAWN = 12,
    THRUM_TRACE_WAKE = 13,
    /* It was taken from worker number `argument`. */
    THRUM_TRACE_STEAL = 14,
    /* It is given another place: worker number `argument`; ~0: any, ~1: a pool. */
    THRUM_TRACE_MIGRATE = 15,
    /* The worker, with nothing to run, begins to search, has found something or is called away; sleeps, goes on. */
    THRUM_TRACE_SEARCH = 16,
    THRUM_TRACE_FOUND = 17,
    THRUM_TRACE_PARK = 18,
    THRUM_TRACE_UNPARK = 19,
};

#define THRUM_TRACE_KIND_MASK 63U

#endif
