// SPDX-License-Identifier: Apache-2.0
/* What a unit waits for, recorded for inspection from outside (src/inspect) and to detect misuse.
 *
 * `awaits` of a unit: one of these in the topmost byte, with AWAITS_TIMED if the wait has a deadline, and below it
 * the address of the object. The unit writes it before it announces itself. The waker clears it (unit_wake,
 * thrum_switch_to); the unit itself does if it does not wait after all, or if an ending unit switched to it directly
 * (join.c). So it is set while the unit waits, and briefly before. A front end's
 * thread says so in the front end's own word (front_shape.state) if the front end wakes it.
 *
 * When a unit is moved from one object to another (sync/mutex.h), the thread that claimed it changes the word; the
 * deadline does not apply to the second wait. */
#ifndef THRUM_SCHED_AWAITS_H
#define THRUM_SCHED_AWAITS_H

#include <stdint.h>

/* Each kind: how thrum_dump and `thrum ps` say it, and the public function in which a unit waits so; of several, the plain
 * one. The enum, words.c (src/inspect) and may_wait.c are made of this list. */
#define AWAITS_LIST(KIND)                                                                                    \
    KIND(NOTHING, "nothing", "a call that waits")                                                            \
    KIND(TIME, "a time", "thrum_sleep")                                                                      \
    KIND(RESUME, "thrum_resume", "thrum_suspend")                                                            \
    KIND(END, "the end of", "thrum_join")                                                                    \
    KIND(CALL, "a blocking call", "thrum_blocking")                                                          \
    KIND(WORKER, "the end of a worker", "thrum_worker_stop")                                                 \
    KIND(WORK, "work for", "thrum_sched_idle")    /* of a scheduler that is stacked */                       \
    KIND(ANY, "any of several", "thrum_wait_any") /* nothing alone */                                        \
    KIND(MUTEX, "mutex", "thrum_mutex_lock")                                                                 \
    KIND(COND, "condition", "thrum_cond_wait")                                                               \
    KIND(READ, "rwlock (read)", "thrum_rwlock_read_lock")                                                    \
    KIND(WRITE, "rwlock (write)", "thrum_rwlock_write_lock")                                                 \
    KIND(SEM, "semaphore", "thrum_sem_wait")                                                                 \
    KIND(BARRIER, "barrier", "thrum_barrier_wait")                                                           \
    KIND(EVENT, "event", "thrum_event_wait")                                                                 \
    KIND(LATCH, "latch", "thrum_latch_wait")                                                                 \
    KIND(EVENTUAL, "eventual", "thrum_eventual_get")                                                         \
    KIND(FUTURE, "future", "thrum_future_wait")                                                              \
    KIND(ONCE, "once", "thrum_once_call")                                                                    \
    KIND(SEND, "channel (send)", "thrum_channel_send")                                                       \
    KIND(RECEIVE, "channel (receive)", "thrum_channel_receive")

#define AWAITS_OF_KIND(name, words, function) AWAITS_##name,
enum awaits { AWAITS_LIST(AWAITS_OF_KIND) AWAITS_KINDS };
#undef AWAITS_OF_KIND

enum { AWAITS_SHIFT = 56 };
#define AWAITS_TIMED (UINT64_C(1) << 63)

static inline uint64_t awaits_make(enum awaits kind, const void *object) {
    return (uint64_t)kind << AWAITS_SHIFT | (uintptr_t)object;
}

static inline enum awaits awaits_kind(uint64_t awaits) {
    return (enum awaits)((awaits & ~AWAITS_TIMED) >> AWAITS_SHIFT);
}

static inline uint64_t awaits_object(uint64_t awaits) {
    return awaits & ((UINT64_C(1) << AWAITS_SHIFT) - 1);
}

#endif
