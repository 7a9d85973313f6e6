// SPDX-License-Identifier: Apache-2.0
/* The life of a kept kernel thread: states, legal transitions, and which thread may make them.
 *
 * Two words of a descriptor tell it (struct kthread in kthread.h):
 *
 *   `life`  the state of the logical thread, for holders of its handle. A sleeping joiner waits on it.
 *   `post`  what the kernel thread must do next. The parked thread waits on it.
 *
 * life        from        to          made by                           when
 *             IDLE        RUNNING     creator, owning the descriptor    a joinable job is prepared
 *             IDLE        DETACHED    creator                           a detached job is prepared
 *             RUNNING     AWAITED     joiner (cas)                      it is about to sleep
 *             AWAITED     RUNNING     joiner (cas)                      it gave up (timeout, cancelled)
 *             AWAITED     RUNNING     any thread (cas)                  a seccomp filter is coming: wakes the joiner, which
 *                                                                       then waits for the kernel thread
 *             RUNNING     (freed)     joiner                            after libc's join: since there is a filter, the kernel
 *                                                                       may have ended the thread, which says nothing then
 *             RUNNING     DETACHED    pthread_detach (cas)
 *             RUNNING     ENDED       the thread itself (cas)           job done, thread kept
 *             AWAITED     ENDED       the thread itself (cas)           likewise, and wakes the joiner
 *             DETACHED    IDLE        the thread itself                 job done: it lists itself
 *             RUNNING     RETIRED     the thread itself (cas)           job done, thread leaves for good
 *             AWAITED     RETIRED     the thread itself (cas)           likewise, and wakes the joiner
 *             ENDED       IDLE        joiner or pthread_detach (cas)    result taken: lists the thread
 *             ENDED       RETIRED     the thread itself (cas)           keeping stopped while it was publishing, or
 *                                                                       main gave up rights, or it was not joined for
 *                                                                       long (retain.h)
 *             ENDED       RUNNING     culler (cas)                      its kernel thread is in the way: it must leave,
 *                                                                       and will say RETIRED as its last act
 *             RETIRED     (freed)     joiner or pthread_detach          after the real join or detach
 *
 * post        NOTHING     SLEEPING    the parked thread (cas)           before it sleeps on the word
 *             NOTHING     JOB         creator (exchange)                no wake-up needed
 *             SLEEPING    JOB         creator (exchange)                and a wake-up
 *             SLEEPING    NOTHING     the holder of the idle list's lock (cas), of a thread in the list: and a wake-up,
 *                                     so that it looks after the idle ones (retain.h), and sleeps again
 *             (either)    QUIT        culler (exchange)
 *             (either)    LAST        likewise, when the leaving thread may be the process's last one
 *             JOB         NOTHING     the thread itself                 before it starts the job
 *
 * A thread in the list may also take itself out of it (idle_remove) and end: it then owns itself until it has listed
 * itself as departed (keep.c); from there on the thread that joins it does.
 *
 * Invariants: a descriptor is in at most one of: the idle list, a creator's hands, a culler's hands, a logical
 * thread's life. Only its present owner writes the job's fields; `post` hands them to the kernel thread
 * (release by the exchange, acquire by its load), `life` hands `result` to the joiner (likewise).
 * A joiner or detacher first claims `joiner` by cas; so at most one of them acts on `life`.
 *
 * Between ENDED or IDLE becoming visible and the thread's own sleep another thread may already have posted the
 * next job: the thread then finds JOB instead of NOTHING and never sleeps. That is the whole of the wake-up
 * protocol; tests/model/handoff.pml checks it.
 *
 * ABA: descriptors are reused, but `life` is only compared by holders of the logical thread's handle, whose
 * lifetime POSIX ends with the join or detach that these transitions implement.
 */
#ifndef THRUM_KTHREAD_LIFE_H
#define THRUM_KTHREAD_LIFE_H

enum life { LIFE_IDLE, LIFE_RUNNING, LIFE_AWAITED, LIFE_DETACHED, LIFE_ENDED, LIFE_RETIRED };

/* LEAVE and UNJOINED are never posted: a parked thread that has taken itself off the idle list, or has told its joiner
 * that it leaves, tells itself (retain.h). */
enum post {
    POST_NOTHING,
    POST_SLEEPING,
    POST_JOB,
    POST_QUIT,
    POST_LAST,
    POST_LEAVE,
    POST_UNJOINED,
};

#endif
