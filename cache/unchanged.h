// SPDX-License-Identifier: Apache-2.0
/* Calls that set inherited kernel state to what it already is. Runtimes do that for each thread that they make, and a
 * thread for which nothing changed need not retire. So what a call may change is looked at before and after it; where
 * the kernel does not tell, it counts as changed. Row lineage.
 *
 * Called by cache/inherit.c, cache/reach.c, cache/syscall.c and cache/kind.c, around calls that are rare. */
#ifndef THRUM_CACHE_UNCHANGED_H
#define THRUM_CACHE_UNCHANGED_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { UNCHANGED_WORDS = 24 };

struct unchanged {
    enum unchanged_what {
        UNCHANGED_UNKNOWN, /* not to be compared */
        UNCHANGED_SCHEDULING,
        UNCHANGED_IO_PRIORITY,
        UNCHANGED_PRCTL,
        UNCHANGED_RIGHTS,
        UNCHANGED_IDS,
        UNCHANGED_MEMORY_POLICY,
    } what;
    long target; /* a tid, 0 for the caller; of PRCTL the option that asks */
    uint64_t words[UNCHANGED_WORDS];
};

/* Before the call. */
struct unchanged unchanged_scheduling(pid_t tid);
struct unchanged unchanged_prctl(int option); /* the option that sets */
struct unchanged unchanged_rights(void);
/* By system call; what it is about is not known: UNCHANGED_UNKNOWN. */
struct unchanged unchanged_by_number(long number, const long *a);

/* After it: nothing has changed. */
bool unchanged_is(const struct unchanged *before);

/* The caller has this policy and priority, and its children inherit them. */
bool unchanged_policy_is_own(int policy, const struct sched_param *param);

#endif
