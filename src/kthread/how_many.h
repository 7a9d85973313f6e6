// SPDX-License-Identifier: Apache-2.0
/* How many kernel threads without a job there are at most.
 *
 * A program may have thousands of threads at once, and then none for long; or join them at the very end, and until then
 * none of them can be reused, for its handle is in use. It would have as many parked kernel threads as it ever made, for
 * nothing. So there are limits, each where it is met:
 *
 *   an end of a first job   how_many_refuses: beyond SPARE_NEW, and as many as have been of use before, a new kernel
 *                           thread really ends, as it would without the cache: joinable or detached. Idle threads and
 *                           *unjoined* ones count, those that have ended and are not joined, while their kernel thread
 *                           is there. A larger max_idle takes the place of that number. No more are kept than the
 *                           shares of the system's limits.
 *   a thread is listed      max_idle of kthread_config: idle_push refuses (idle.h). Not set, it bounds nothing.
 *   a creation that misses  how_many_evicts: beyond SPARE_OTHER_KINDS, and as many as are live, it ends an idle one.
 *
 * Called by kthread.c, join.c, keep.c and start.c. How long a thread is kept: retain.h. */
#ifndef THRUM_KTHREAD_HOW_MANY_H
#define THRUM_KTHREAD_HOW_MANY_H

#include <stdbool.h>

#include "kthread/kthread.h"

/* The defaults. Both numbers also stand in libthrum-cache(7), at THRUM_CACHE_MAX_IDLE, and in thrum-run(1), at
 * --max-idle; SPARE_NEW in `thrum run --help` (cli/arguments.cpp) and docs/internals/placement.md, too. They are tested
 * by tests/policy/policy.c. */
enum {
    SPARE_NEW = 512, /* new kernel threads, beside as many as creations were served by an idle thread */
    SPARE_OTHER_KINDS =
        64, /* idle threads when a creation finds none of its kind, beside as many as are live */
};

/* At the end of a thread's job, by itself, the last thing before it is kept: RETIRE_NOT, or which limit it has met. If it
 * is kept and not detached, it counts as unjoined. */
enum kthread_retire how_many_refuses(struct kthread *thread);
/* It has been joined or detached, or its kernel thread leaves. The descriptor stays meanwhile. */
void how_many_not_unjoined(struct kthread *thread);

/* Which limit idle_push met. */
enum kthread_retire how_many_full(void);

/* A creation that found no idle thread of its kind is to end the coldest. */
bool how_many_evicts(void);

/* Live threads take a share of the mappings that a process may have that would matter to it. */
bool how_many_mappings(void);

/* In a fork's child: no other thread is there. */
void how_many_fork_child(void);

#endif
