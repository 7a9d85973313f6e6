// SPDX-License-Identifier: Apache-2.0
/* Finding one of those who were preempted. Only they can have a lock of libc's, or of the program's, for which somebody waits
 * in the kernel; and only they can be gone on with where thread control blocks are short (preempt/lend.c).
 *
 * Nobody is passed over for ever: which queue is first is drawn, others go to the end of theirs, and in pools, which have an
 * order of their own, one of those who were preempted is drawn, as far as it looks. By turns there would be some that never
 * come together, since it is called from several places that take turns themselves. */
#ifndef THRUM_SCHED_PREEMPTED_H
#define THRUM_SCHED_PREEMPTED_H

struct thrum_sched;
struct thrum_unit;
struct worker;

/* By `worker`: one of them, from where worker `from` would find it, and if that is another also from where it would steal
 * it; NULL: there is none. `own`: the scheduler whose loop the caller is, which may be stacked, or NULL; then its pools are
 * looked at. Of its pools of the program's kinds, of which the functions are called as that scheduler would, it is whoever
 * comes first, and may not have been preempted. Inside. */
struct thrum_unit *preempted_take(struct worker *worker, struct worker *from, const struct thrum_sched *own);

#endif
