// SPDX-License-Identifier: Apache-2.0
/* The idle list: kernel threads that wait for a job, the last one in first out so that the warmest stack and
 * cache are used first (with a minimum rest the first one in), one list per NUMA node. This interface is all that the rest knows of it.
 *
 * Any thread may call these. A descriptor in the list belongs to the list. */
#ifndef THRUM_KTHREAD_IDLE_H
#define THRUM_KTHREAD_IDLE_H

#include "kthread/kthread.h"

/* Lists a thread, on the caller's node. False if that would be more than kthread_config allows: the thread has
 * to be ended instead. */
bool idle_push(struct kthread *thread);

/* Takes this very thread out again. False if it is not listed: another thread was quicker, and has it. */
bool idle_remove(struct kthread *thread);

/* One of this kind that has rested enough, the most recent, or with a minimum rest the least recent; the caller's node
 * first. If one of the few next to it last ran on another CPU than `avoid`, rather that one; -1: on any. NULL if there is
 * none. */
struct kthread *idle_pop(const struct kthread_kind *kind, int avoid);

/* The one that has been idle longest on the caller's node, or else any; NULL if there is none. Not with a minimum
 * rest. */
struct kthread *idle_pop_coldest(void);

/* For retain.h. One that has been idle since then or longer, the longest first; NULL if there is none. */
struct kthread *idle_pop_since(uint64_t monotonic_ns);
struct idle_times {
    uint64_t count, sum, oldest; /* sum of the idle times so far; when the oldest was listed (monotonic ns) */
};
void idle_measure(struct idle_times *times, uint64_t now_ns);
/* Makes this thread, or some thread for NULL, look after the idle ones (retain_watch), if it is listed. */
void idle_poke(const struct kthread *thread);

/* Any one, to be ended; NULL if there is none. */
struct kthread *idle_pop_any(void);

/* The caller is a signal handler that interrupted its own thread in here: it must wait for no lock of the list. */
bool idle_is_inside(void);

/* In a fork's child: empty, whatever state the locks are in. */
void idle_fork_child(void);

#endif
