// SPDX-License-Identifier: Apache-2.0
/* libthrum-cache.so: its counters, and why it is on or off.
 *
 * A program never links against the preloaded library. It looks these names up at run time:
 *
 *     const struct thrum_cache_counters *c = dlsym(RTLD_DEFAULT, "thrum_cache_counters");
 *     if (c != NULL && c->version == THRUM_CACHE_COUNTERS_VERSION)
 *         printf("%llu threads reused\n", (unsigned long long)c->reused);
 *
 * NULL means that the program runs without the cache. `thrum counters PID` reads the same object from another
 * process, while the program runs.
 *
 * Contexts: everything here may be used from any thread and from a signal handler. Fields are updated with
 * relaxed atomics, each by itself: two of them read together may be of slightly different times.
 */
#ifndef THRUM_CACHE_H
#define THRUM_CACHE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define THRUM_CACHE_COUNTERS_VERSION 1
#define THRUM_CACHE_REASONS_MAX      32

/* Why a kernel thread ended instead of being kept for reuse. X(enumerator, text) */
#define THRUM_CACHE_RETIRE_REASONS(X)                                                                        \
    X(CANCELLED, "cancelled")                                                                                \
    X(LINEAGE, "changed what its children inherit")                                                          \
    X(ROBUST, "robust mutex held")                                                                           \
    X(PENDING, "signal pending")                                                                             \
    X(CHILD, "created a process")                                                                            \
    X(TIES, "tied to its kernel thread")                                                                     \
    X(LAST, "last thread")                                                                                   \
    X(LIMIT, "idle limit reached")                                                                           \
    X(MANY_UNJOINED, "too many wait to be joined")                                                           \
    X(MEMORY, "address space limited")                                                                       \
    X(OFF, "cache off")                                                                                      \
    X(UNJOINED, "not joined when idle threads were ended")

/* Why a creation was left to the C library. */
#define THRUM_CACHE_PASS_REASONS(X)                                                                          \
    X(STACK, "user stack")                                                                                   \
    X(SCHEDULING, "explicit scheduling")                                                                     \
    X(AFFINITY, "affinity attribute")                                                                        \
    X(SIGMASK, "signal mask attribute")                                                                      \
    X(LINEAGE, "creator of unknown lineage")                                                                 \
    X(MEMORY, "no memory for a descriptor")                                                                  \
    X(OFF, "cache off")

struct thrum_cache_counters {
    uint32_t version;   /* THRUM_CACHE_COUNTERS_VERSION */
    uint32_t size;      /* sizeof(struct thrum_cache_counters) */
    uint64_t created;   /* kernel threads that the cache created */
    uint64_t reused;    /* creations served by an idle thread */
    uint64_t retired;   /* kernel threads that ended after their last job (sum of retired_by) */
    uint64_t passed;    /* creations left to the C library (sum of passed_by) */
    uint64_t culled;    /* idle threads ended to return their memory to the system */
    uint64_t idle;      /* idle threads now */
    uint64_t idle_peak; /* the most at any time */
    uint64_t live;      /* the program's threads that the cache started and that run or are not joined yet */
    uint64_t retired_by[THRUM_CACHE_REASONS_MAX]; /* in the order of THRUM_CACHE_RETIRE_REASONS */
    uint64_t passed_by[THRUM_CACHE_REASONS_MAX];  /* in the order of THRUM_CACHE_PASS_REASONS */
};

/* The sum over all processes that ran with THRUM_CACHE_TOTAL=FILE. The creator of FILE writes one of these, with the
 * first two fields set and zeros after them. Each process maps it, and adds its counters when it ends. A process that a
 * signal kills, or that executes another program, adds nothing. */
struct thrum_cache_total {
    uint32_t version;                /* THRUM_CACHE_COUNTERS_VERSION */
    uint32_t size;                   /* sizeof(struct thrum_cache_total) */
    uint64_t loaded;                 /* how many times the library was loaded */
    uint64_t ended;                  /* processes that added their counters, children of fork included */
    struct thrum_cache_counters sum; /* version and size are not set */
};

/* The object itself: exported, written by the cache only. */
extern struct thrum_cache_counters thrum_cache_counters;

/* The text of reason number i; NULL past the end. */
const char *thrum_cache_retire_reason(unsigned i);
const char *thrum_cache_pass_reason(unsigned i);

/* "on", or a phrase that says why the cache is off. */
const char *thrum_cache_state(void);

#ifdef __cplusplus
}
#endif

#endif
