// SPDX-License-Identifier: Apache-2.0
/* Where and how a kept thread is woken, and which threads spin: all of the cache's speed, none of its correctness.
 *
 * Waking a thread that sleeps on another CPU costs ten times as much as on one's own; handing the job to a thread
 * that still spins on another CPU costs almost nothing. So: spin across CPUs, sleep on the same CPU.
 *
 *   HOT    the thread still spins after its last job, on another CPU: the job is stored, no system call is made.
 *   HERE   it sleeps, the job is expected to be brief and the creator to join at once: the thread is woken on
 *          the creator's CPU, and puts the affinity mask right before anything else.
 *   STAY   likewise, and it last ran on this CPU: woken without touching its mask, the kernel mostly leaves it here.
 *   PROBE  now and then, instead of HERE: woken on any CPU but this one, and both sides spin for longer. If they
 *          meet they stay HOT.
 *   PLAIN  everything else (nothing known, long jobs, detached threads, a creator that continues to work): the
 *          kernel chooses the CPU, as it does for a new thread.
 *
 * docs/internals/placement.md tells how these came about, what they cost and what else was tried.
 *
 * What is learned is kept per call site (site.h), in the creator (thread-local) and in the descriptor. The
 * functions are called in this order, C by the creator, J by the joiner, T by the thread itself:
 *   C place_avoids    the CPU on which the chosen thread should not have slept, or -1
 *   C place_post      instead of kthread_post, with the descriptor owned and prepared
 *   T place_begin     first act after it has been woken, before the affinity mask is set
 *   T place_end       the job is done, before that is published; place_linger after
 *   J place_join      the creator is back for the thread, whether that has ended or not
 *   J place_wait      it has not: before the joiner sleeps; true: now it has
 *   J place_joined    the thread has ended, before the descriptor is given away, if place_wait was called
 */
#ifndef THRUM_KTHREAD_PLACE_H
#define THRUM_KTHREAD_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "kthread/site.h"

struct kthread;

enum place_how { PLACE_NEW, PLACE_HOT, PLACE_HERE, PLACE_STAY, PLACE_PROBE, PLACE_PLAIN };

/* Written by the creator while it owns the descriptor; r/o for the thread and the joiner until the end. */
struct place_order {
    struct site *site;
    uint32_t how; /* enum place_how */
    int creator_cpu;
    int slept_cpu;   /* where the thread was when it went to sleep */
    uint64_t posted; /* ticks */
};

/* Written by the thread. */
struct place_run {
    uint64_t started; /* ticks */
    int cpu;          /* where the present job began, -1 before; joiners look at it */
    int last_cpu;
};

/* The thread's own notes, from job to job. */
struct place_notes {
    struct place_order order; /* a copy: the next creator may write its own as soon as the end is published */
    bool short_job;           /* the last job was */
    uint64_t series_began;    /* ticks; see clean_up in kthread.c */
    uint32_t fails, skip;     /* spins that were for nothing, and how many chances to pass up for it */
};

int place_avoids(void);
void place_post(struct kthread *thread, bool detached);
void place_new(struct kthread *thread, bool detached); /* it is a new one, nothing needs to be chosen */
void place_begin(struct kthread *thread);
uint64_t place_end(struct kthread *thread); /* for how many ticks it ran; UINT64_MAX: not known */
void place_linger(struct kthread *thread);
void place_join(struct kthread *thread);
bool place_wait(struct kthread *thread);
void place_joined(struct kthread *thread, bool slept);
void place_detached(void); /* the caller detaches a thread: it will not come back for it */

void place_init(void);
void place_fork_child(void);

#endif
