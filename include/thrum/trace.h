// SPDX-License-Identifier: Apache-2.0
/* The file that libthrum writes when THRUM_TRACE=FILE is in the environment: what units (user-level threads, tasklets) and
 * workers did, and when. `thrum trace` converts it for Perfetto; this header is for programs that read it themselves.
 *
 * The file has one section for each runtime that the process had, one after another. A section, in the byte order of the
 * machine and without gaps:
 *
 *   struct thrum_trace_header
 *   for each of `rings`:   struct thrum_trace_ring, and `events` times struct thrum_trace_event, oldest first
 *   `maps_bytes` bytes:    the text of /proc/self/maps at the time of writing, for finding function names
 *
 * A descriptor serves many units one after another: an address identifies one unit from a SPAWN or BEGIN to the next END.
 * The oldest events may be lost; a unit may then be seen first at a RESUME.
 *
 *     struct thrum_trace_header header;
 *     FILE *file = fopen("run.trace", "rb");
 *     if (file != NULL && fread(&header, sizeof header, 1, file) == 1 && header.version == THRUM_TRACE_VERSION)
 *         printf("process %llu, %u rings\n", (unsigned long long)header.pid, header.rings);
 */
#ifndef THRUM_TRACE_H
#define THRUM_TRACE_H

#include <stdint.h>

#define THRUM_TRACE_MAGIC    "thrumtrc" /* the file has these eight bytes, without a terminating 0 */
#define THRUM_TRACE_VERSION  1
#define THRUM_TRACE_EXTERNAL 0xffffffffU /* instead of a worker's number: all threads that are not workers */

struct thrum_trace_timestamp {
    uint64_t ticks; /* of the counter that stamps events */
    uint64_t ns;    /* CLOCK_MONOTONIC */
};

struct thrum_trace_header {
    char magic[8];
    uint32_t version;                        /* THRUM_TRACE_VERSION */
    uint32_t header_bytes;                   /* sizeof(struct thrum_trace_header) */
    uint32_t event_bytes;                    /* sizeof(struct thrum_trace_event) */
    uint32_t rings;                          /* one for each worker, and one for all other threads */
    uint64_t pid;                            /* of the process */
    struct thrum_trace_timestamp begin, end; /* of the runtime; interpolate linearly in between */
    uint64_t maps_bytes;
};

struct thrum_trace_ring {
    uint32_t worker; /* its number, or THRUM_TRACE_EXTERNAL */
    uint32_t relief; /* 1: not one of the program's workers, but a relief worker (thrum-preemption(7)) */
    uint64_t events;
    uint64_t lost; /* older events that these have overwritten */
};

struct thrum_trace_event {
    uint64_t ticks;
    uint64_t what; /* a unit's address, or 0; the six low bits are an enum thrum_trace_kind */
    uint64_t argument;
};

enum thrum_trace_kind {
    /* The unit starts to run on this worker. `argument`: its function; 0: the thread that called thrum_init. */
    THRUM_TRACE_BEGIN = 1, /* for the first time */
    THRUM_TRACE_RESUME = 2,
    /* The unit leaves the worker: */
    THRUM_TRACE_WAIT = 3,     /* it waits */
    THRUM_TRACE_YIELD = 4,    /* it yields */
    THRUM_TRACE_CHILD = 5,    /* it is enqueued; the unit that it spawned begins here now */
    THRUM_TRACE_MOVE = 6,     /* it migrates */
    THRUM_TRACE_HOST = 7,     /* as a scheduler, for the unit that it runs */
    THRUM_TRACE_END = 8,      /* it ends */
    THRUM_TRACE_PREEMPT = 20, /* its slice is over: it was preempted */
    /* A tasklet runs, on the stack of the unit that runs here, or on the worker's own. `argument`: its function. */
    THRUM_TRACE_TASKLET = 9,
    THRUM_TRACE_TASKLET_END = 10,
    /* The name of the unit of the previous event. No time: `ticks` and `argument` hold eight bytes of the name each. */
    THRUM_TRACE_NAME = 11,
    /* The unit becomes runnable, by a spawn (`argument`: its function) or by a wake-up. */
    THRUM_TRACE_SPAWN = 12,
    THRUM_TRACE_WAKE = 13,
    /* The unit was stolen from worker number `argument`. */
    THRUM_TRACE_STEAL = 14,
    /* The unit gets another place: worker number `argument`; ~0: any worker, ~1: a pool. */
    THRUM_TRACE_MIGRATE = 15,
    /* The worker has nothing to run and starts to search; has found something or is called away; sleeps; is awake again. */
    THRUM_TRACE_SEARCH = 16,
    THRUM_TRACE_FOUND = 17,
    THRUM_TRACE_PARK = 18,
    THRUM_TRACE_UNPARK = 19,
};

#define THRUM_TRACE_KIND_MASK 63U

#endif
