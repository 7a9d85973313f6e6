// SPDX-License-Identifier: Apache-2.0
/* Standby threads: kernel threads that libc has made and that have done nothing yet but to park. A creation takes one
 * and hands it its job; it runs that one and ends in libc, as any thread of libc's does.
 *
 * Sound without making anything fresh, but for what changed between its creation and its job: what it gets from its
 * creator (creator_apply; lineages must match), libc's notion of the global locale (libc_state_begin), signals sent
 * to its tid meanwhile, which were meant for no thread, and thread-locals of libraries that were opened while it was
 * made, of which libc does not put the initial values into threads that it does not know yet (tls_reimage).
 *
 * The pool: one short list per kind, LIFO, all under one lock. A kind's `level` says how many should stand by: none at
 * first, doubled by every creation that finds none, up to mode_config.standby.
 *
 * How they are made:
 *   STANDBY          the *filler*, a thread of ours with all signals blocked, made by the first creation, woken when a
 *                    list is half empty, and asleep otherwise. Its children are of its lineage, so only that one is
 *                    served.
 *   STANDBY_HELPING  each thread that ends, in itself, before libc sees the end (by return, pthread_exit or
 *                    cancellation), if its own kind's list is not full. C++ thread_local and key destructors run later.
 *
 * A standby thread, `post` (life.h's words):
 *   NOTHING   SLEEPING   the thread (cas)                              before it sleeps on the word
 *   (either)  JOB        creator, having taken it out of the list      the job is written (release by the exchange)
 *   (either)  QUIT       the thread that took it out, or its creator   it returns to libc and is joined by that one
 * Before JOB the descriptor is its taker's, after it the thread's, which frees it before its job begins.
 *
 * Not keeping the process alive: libc counts standby threads and the filler as living ones, so none of them may be
 * left when the last logical thread ends. kthread_stop_keeping (main's pthread_exit) clears `keeping` and then calls
 * standby_cull, which ends the filler and all that is listed and joins them; a thread that lists one reads `keeping`
 * under the pool's lock, so it is either seen by the cull or sees that it must end its thread itself, which it joins
 * before it ends itself. Hence none of ours is ever the process's last thread.
 *
 * fork: the child begins with an empty pool and no filler, and forgets the descriptors (keep.c says why). exit: nothing
 * is done, as with idle threads. */
#ifndef THRUM_ALTERNATIVES_STANDBY_H
#define THRUM_ALTERNATIVES_STANDBY_H

#include "mode.h"

/* As alternative.h says of `start`. */
bool standby_start(const struct kthread_kind *kind, bool detached, void *(*fn)(void *), void *arg,
                   pthread_t *handle);

/* Ends the filler and all that stand by, and waits until the kernel has let go of them. How many threads there were.
 * The next creation begins anew. */
unsigned standby_cull(void);

void standby_fork_child(void);

/* For tests: how many stand by now. */
unsigned standby_ready(const struct kthread_kind *kind);

#endif
