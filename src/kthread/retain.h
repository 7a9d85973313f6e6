// SPDX-License-Identifier: Apache-2.0
/* Retention: what becomes of idle threads as time passes.
 *
 * Each parked thread manages itself. Its sleep has a deadline, and it does itself what is due then:
 *
 *   trim_after       it gives back its stack, but the page it stands on, and its large thread-locals
 *   max_age          it ends. The threads of one burst end one after another, between half of max_age and all of it: so
 *                    what a burst left decays, and the next burst finds what is left of it. The idle list is last in,
 *                    first out; a thread that is needed begins anew, and those at the list's end are the surplus.
 *                    A thread that has ended and that no thread has joined for so long leaves as well (life.h); its
 *                    result stays with its descriptor.
 *
 * Both are on by default (cache/init.c). Nothing is shared for them: the price is a deadline on a sleep.
 *
 * Two policies look at all idle threads together, each off unless kthread_config says otherwise:
 *
 *   thread_seconds   the sum of all idle threads' idle times is bounded; the coldest end until it fits
 *   pressure         where memory is short all idle threads end (os/pressure.h; looked at once a second at most)
 *
 * There is no thread for these. One of the parked threads is the *warden*: it sleeps until the next thing is due, does
 * it, and sleeps again. A thread that parks while there is no warden, or while the warden sleeps past what is due for
 * the one that parks, becomes it. A warden that is handed a job gives the role up and wakes another idle thread to take
 * it.
 *
 * Shared words: `warden`, which thread it is, `until`, when it will look again, `busy`, that it does its chores. They
 * change only under the lock in retain.c, which is held for the bookkeeping, not for the work; read without it they are
 * hints. That a warden exists while anything is due holds because each thread looks after it has parked, and a thread
 * that lists one that had parked before looks for it: if there is no warden, or one that sleeps past what may be due,
 * the thread takes the role; if the warden is busy, it begins anew before it sleeps. One that gives the role up wakes
 * a listed thread, and one that is handed a job while there is no warden does the same, since it may be the one that
 * was woken. While it is busy no other thread takes the role, so no two end each other, and it is not handed a job.
 *
 * A thread that ends by itself, or ends another, is *departing* (keep.c): kthread_cull waits for it, and a copy of the
 * process that libc does not know of (a bare clone) is not made meanwhile. */
#ifndef THRUM_KTHREAD_RETAIN_H
#define THRUM_KTHREAD_RETAIN_H

#include <stdbool.h>
#include <stdint.h>

struct kthread;

/* A policy that needs a warden is on. */
bool retain_wants_warden(void);

/* In a parked thread, before it sleeps and again whenever it wakes without a post: does what is due for itself, and for
 * the others if it is the warden. For how long it may sleep, 0 for ever. RETAIN_LEAVE: it has taken itself off the idle
 * list and must end (the caller owns the descriptor, departures_begin has been called). RETAIN_UNJOINED: it has said
 * RETIRED and must end (the descriptor is the joiner's). */
#define RETAIN_LEAVE    (UINT64_MAX - 1)
#define RETAIN_UNJOINED (UINT64_MAX - 2)
uint64_t retain_watch(struct kthread *thread);

/* In the thread, when it has been posted to: it is not the warden any more. */
void retain_wake(struct kthread *thread);

/* The caller has listed a thread that had parked before. */
void retain_listed(struct kthread *thread);

/* A hint: it does its chores, and would be late for a job. */
bool retain_is_busy(const struct kthread *thread);

void retain_fork_child(void);

#endif
