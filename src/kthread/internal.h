// SPDX-License-Identifier: Apache-2.0
/* What the files of this layer share among themselves. */
#ifndef THRUM_KTHREAD_INTERNAL_H
#define THRUM_KTHREAD_INTERNAL_H

#include "kthread/kthread.h"

/* --- registry.c: every descriptor in use, for look-ups that are not by handle ------------------------- */
void registry_init(void);           /* after creator_init, before the first thread */
struct kthread *registry_new(void); /* zeroed, known, gate closed; NULL without memory */
void registry_free(struct kthread *thread);
/* Calls visit for each known descriptor, under the registry's lock. */
void registry_each(void (*visit)(struct kthread *thread, void *argument), void *argument);
bool registry_is_empty(void);                       /* without the lock */
void registry_fork_child(struct kthread *survivor); /* the only one left in a fork's child, or NULL */

/* --- kthread.c ---------------------------------------------------------------------------------------- */
/* The start routine of every kernel thread of ours; its argument is the descriptor. */
void *kthread_main(void *thread);
/* Ties a handle to its descriptor. Called by the creator, while the thread cannot end. */
void kthread_mark(pthread_t handle, struct kthread *thread);
/* In a fork's child, for the thread that called fork. */
void kthread_adopt_tid(struct kthread *self);

/* --- start.c ------------------------------------------------------------------------------------------ */
/* Attributes of libc's for a thread of this kind; 0, or libc's errno and nothing to destroy. */
size_t
kthread_stack_size(const struct kthread_kind *kind); /* what it is made with: small ones are a page larger */
int kthread_attributes(pthread_attr_t *attributes, const struct kthread_kind *kind);

/* --- keep.c: which threads are kept, and ending those that are not ------------------------------------ */
bool keeping(void);                             /* seq_cst: see kthread_stop_keeping */
bool may_be_kept(const struct kthread *thread); /* and has no rights that main has given up; likewise */
enum kthread_retire keeping_retire(void);       /* why not */
/* Why a thread that ended and is not joined is told to leave (POST_LAST). */
enum kthread_retire expelled_retire(const struct kthread *thread);
/* Tells a parked thread that the caller owns to leave, and waits until it has. */
void kthread_end(struct kthread *thread);
/* Lists a thread whose result has been taken; ends it if it must not be kept. */
void kthread_release(struct kthread *thread);
/* Ends of kernel threads that no thread of the program waits for (retain.h). Around each, on the thread that ends or
 * that ends another: begin, false while a copy of the process is being made (later, then); end, with the descriptor
 * of a thread that is about to return to libc without a joiner, else NULL. */
bool departures_begin(void);
void departures_end(struct kthread *departed);
/* Between the two: a thread that has ended and is not joined says RETIRED. False if a joiner was quicker. */
bool departures_unjoined(struct kthread *thread);
/* Joins those that have returned to libc: any thread. */
void departures_reap(void);
void departures_fork_child(void);
/* After libc's join: waits until the kernel does not count the thread any more either. */
void wait_until_gone(pid_t tid);

/* Posts to a parked thread, waking it if it sleeps. */
void kthread_post(struct kthread *thread, enum post post);

#endif
