// SPDX-License-Identifier: Apache-2.0
/* Retention: what becomes of idle threads as time passes. By default nothing does, all are kept as they are. The
 * policies, each off unless kthread_config says otherwise:
 *
 *   max_age          an idle thread that nobody needed for so long ends
 *   thread_seconds   the sum of all idle threads' idle times is bounded; the coldest end until it fits
 *   trim_after       an idle thread gives its whole stack back, but the page it stands on
 *   pressure         where memory is short all idle threads end (os/pressure.h; looked at once a second at most)
 *
 * There is no thread for this. One of the parked threads is the *warden*: it sleeps until the next thing is due
 * instead of for ever, does it, and sleeps again. Who parks while there is no warden, or while the warden sleeps
 * past what is due for the one that parks, becomes it. A warden that is handed a job gives the role up and wakes
 * another idle thread to take it.
 *
 * Shared words: `warden`, which thread it is, `until`, when it will look again, `busy`, that it is at its chores. They
 * change only under the lock in retain.c, which is held for the bookkeeping, not for the work; read without it they are
 * hints. That a warden exists while anything is due holds because each thread looks after it has parked, and whoever
 * lists one that had parked before looks for it: if there is no warden, or one that sleeps past what may be due, the
 * thread takes the role; if the warden is busy, it begins anew before it sleeps. One that gives the role up wakes a
 * listed thread, and one that is handed a job while there is no warden does the same, since it may be the one that was
 * woken. While it is busy nobody else takes the role, so no two end each other, and it is not handed a job.
 *
 * Not promised: that an idle thread which ends by itself is gone for whoever needs a process of one thread (unshare) at
 * that moment, or is not in libc, with its locks, when a clone copies the process without libc's knowing. Without
 * policies no idle thread does. */
#ifndef THRUM_KTHREAD_RETAIN_H
#define THRUM_KTHREAD_RETAIN_H

#include <stdbool.h>
#include <stdint.h>

struct kthread;

/* Any policy is on. */
bool retain_wanted(void);

/* In a parked thread, before it sleeps and again whenever it wakes without a post: does what is due if it is the
 * warden. For how long it may sleep, 0 for ever; or RETAIN_LEAVE: it has taken itself off the idle list and must end
 * (the caller owns the descriptor). */
#define RETAIN_LEAVE (UINT64_MAX - 1)
uint64_t retain_watch(struct kthread *thread);

/* In the thread, when it has been posted to: it is not the warden any more. */
void retain_wake(struct kthread *thread);

/* The caller has listed a thread that had parked before. */
void retain_listed(struct kthread *thread);

/* A hint: it is at its chores, and would be late for a job. */
bool retain_is_busy(const struct kthread *thread);

void retain_fork_child(void);

#endif
