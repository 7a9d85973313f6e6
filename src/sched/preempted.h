// SPDX-License-Identifier: Apache-2.0
/* Finding one of those who were preempted. Only they can have a lock of libc's, or of the program's, for which somebody waits
 * in the kernel; and only they can be gone on with where thread control blocks are short (preempt/lend.c).
 *
 * Nobody is passed over for ever: each queue is first in turn, others go to the end of theirs, and in pools, which have an
 * order of their own, those who were preempted are taken in turn, as far as it looks. */
#ifndef THRUM_SCHED_PREEMPTED_H
#define THRUM_SCHED_PREEMPTED_H

#include <stdint.h>

struct thrum_sched;
struct thrum_unit;
struct worker;

/* One of them, from where this worker would find it, from the shared queue, or from a pool that a scheduler has; NULL: there
 * is none. Pools of the program's kinds are looked at if they are `own`'s, whose loop the caller is, since their functions
 * are called as that would; NULL: it is none. `turn`: another one each time. Inside. */
struct thrum_unit *preempted_take(struct worker *from, const struct thrum_sched *own, uint32_t turn);

#endif
