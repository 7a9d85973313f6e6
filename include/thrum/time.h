// SPDX-License-Identifier: Apache-2.0
/* libthrum: time.
 *
 *     static void *tick(void *arg) {
 *         uint64_t next = thrum_now();
 *         for (int i = 0; i < 10; i++) {
 *             thrum_sleep_until(next += 100 * THRUM_MS); // ten times a second, however long the work takes
 *             work(arg);
 *         }
 *         return NULL;
 *     }
 *
 *     thrum_t thread;
 *     thrum_spawn(&thread, NULL, tick, NULL);
 *     if (thrum_join_until(thread, NULL, thrum_now() + 5 * THRUM_S) == ETIMEDOUT)
 *         puts("it takes longer than five seconds");
 *
 * Deadlines and durations are in nanoseconds, deadlines on CLOCK_MONOTONIC. UINT64_MAX is never. Nothing here returns
 * before its deadline; how late it returns depends on what else is runnable. A busy worker checks for expired timers about
 * every 50 us, provided that its threads wait, yield or end that often. Idle workers also check the others' timers.
 *
 * A thread that sleeps when the runtime ends (thrum_fini) never wakes up. */
#ifndef THRUM_TIME_H
#define THRUM_TIME_H

#include <stdint.h>

#include "thrum/thrum.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define THRUM_US UINT64_C(1000)
#define THRUM_MS UINT64_C(1000000)
#define THRUM_S  UINT64_C(1000000000)

/* The present time. From: anywhere, also signal handlers. */
uint64_t thrum_now(void);

/* Sleeps for at least `ns` nanoseconds while other threads run; an external kernel thread sleeps as a whole. 0 is a
 * thrum_yield. From: ULT, external; a tasklet or a scheduler: one line, and abort. After clock_nanosleep of POSIX, except
 * that it is not interrupted. */
void thrum_sleep(uint64_t ns);

/* Sleeps until `deadline`; one that has passed is a thrum_yield. From: ULT, external. */
void thrum_sleep_until(uint64_t deadline);

/* --- timers ------------------------------------------------------------------------------------------- */

/*     static void flush(void *log) {
 *         fflush(log);
 *     }
 *
 *     static thrum_timer_t flushing = THRUM_TIMER_INITIALIZER;
 *
 *     thrum_timer_start(&flushing, thrum_now() + THRUM_S, THRUM_S, flush, stdout);
 *     work(NULL);
 *     thrum_timer_stop(&flushing);
 */
typedef struct {
    uint64_t opaque[10];
} thrum_timer_t;

#define THRUM_TIMER_INITIALIZER                                                                              \
    {                                                                                                        \
        { 0 }                                                                                                \
    }

void thrum_timer_init(thrum_timer_t *timer);

/* Calls fn(arg) at `expiry`, and then every `period` ns; once only if that is 0. A ULT of the timer's own makes the calls.
 * So fn may wait, and calls may be as late as any wake-up from a sleep. Calls do not overlap; expiries that pass during a
 * call are skipped. fn must return: thrum_exit in it is undefined. The timer must stay valid until thrum_timer_stop has
 * returned.
 *
 * From: ULT, external.
 * Errors: EBUSY it was started and not stopped since; EINVAL `fn` is NULL; EAGAIN as thrum_spawn. After Go's
 * time.AfterFunc and time.Ticker. */
int thrum_timer_start(thrum_timer_t *timer, uint64_t expiry, uint64_t period, void (*fn)(void *arg),
                      void *arg);

/* Stops the timer: when this returns no call begins any more, and a running one has ended. The timer may then be started
 * again. Every started timer must be stopped, also one that has made its only call. One thread at a time may stop it. This and
 * thrum_timer_stop_until are no cancellation points.
 *
 * From: ULT, external.
 * Errors: EINVAL it has not been started; EDEADLK the caller is in `fn`: no further call begins, but another thread must
 * still stop it; EPERM the caller is a tasklet or a scheduler and would have to wait: likewise; ESRCH as thrum_join. */
int thrum_timer_stop(thrum_timer_t *timer);

/* The same, but the caller waits for the running call at most until `deadline`. After ETIMEDOUT no further call begins, and the
 * timer must still be stopped, as after EDEADLK.
 *
 * From: ULT, external.
 * Errors: as thrum_timer_stop; ETIMEDOUT. */
int thrum_timer_stop_until(thrum_timer_t *timer, uint64_t deadline);

/* --- one-shot calls ----------------------------------------------------------------------------------- */

/*     static void give_up(void *event) {
 *         thrum_event_set(event);
 *     }
 *
 *     thrum_call_t giving_up;
 *     if (thrum_call_at(&giving_up, thrum_now() + 5 * THRUM_S, give_up, &stop) == 0) {
 *         work(NULL);
 *         thrum_call_cancel(giving_up); // ESRCH: `stop` is set, or about to be
 *     }
 */
typedef struct {
    uint64_t opaque[2];
} thrum_call_t;

/* Calls fn(arg) once, at `expiry` or soon after; one that has passed is now, UINT64_MAX is never. No thread waits for it: until
 * then it takes some 350 bytes, which are freed by themselves. A tasklet makes the call, so fn must not wait; it may wake
 * threads, spawn them, and call this function again. `call` may be NULL: it cannot be cancelled then. *call is set before fn
 * begins. thrum_fini drops calls that have not begun.
 *
 * From: ULT, external.
 * Errors: EINVAL `fn` is NULL; EAGAIN no memory. The first call in a program that never called thrum_init also has the errors
 * of thrum_init. After Go's time.AfterFunc. */
int thrum_call_at(thrum_call_t *call, uint64_t expiry, void (*fn)(void *arg), void *arg);

/* Drops the call if it has not begun. After 0 it never begins, and its memory is free. It may be called any number of times
 * for each call, by any thread, at any later time.
 *
 * From: ULT, external.
 * Errors: ESRCH it has begun (and may still run), was cancelled, or thrum_fini has dropped it; EINVAL `call` is not from
 * thrum_call_at. After Go's Timer.Stop. */
int thrum_call_cancel(thrum_call_t call);

/* --- joining ------------------------------------------------------------------------------------------ */

/* As thrum_join, but waits at most until `deadline`. After ETIMEDOUT the thread continues, and must still be joined or
 * detached.
 *
 * From: ULT, external.
 * Errors: as thrum_join; ETIMEDOUT. */
int thrum_join_until(thrum_t thread, void **result, uint64_t deadline);

/* As thrum_join if the thread has ended. Otherwise this has no effect.
 *
 * From: ULT, external.
 * Errors: as thrum_join; EBUSY it has not ended. */
int thrum_try_join(thrum_t thread, void **result);

/* As thrum_join_until and thrum_try_join, but the handle stays valid, as after thrum_join_keep.
 *
 * From: ULT, external.
 * Errors: as those. */
int thrum_join_keep_until(thrum_t thread, void **result, uint64_t deadline);
int thrum_try_join_keep(thrum_t thread, void **result);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
