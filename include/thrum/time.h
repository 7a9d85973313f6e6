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
 * Moments and spans are in nanoseconds, moments on CLOCK_MONOTONIC. UINT64_MAX is never. Nothing here returns before
 * its moment; how long after depends on what there is to run. A worker that is busy looks about every 50 us for what
 * has come, if its threads wait, yield or end that often; workers that have nothing to do look after the others'.
 *
 * Where the runtime ends (thrum_fini), whoever sleeps never wakes up. */
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

/* The present moment. From: anywhere, also signal handlers. */
uint64_t thrum_now(void);

/* Sleeps for at least so long. Others run meanwhile; only an external kernel thread sleeps as a whole. 0 is a
 * thrum_yield. From: ULT, external; a tasklet, or a scheduler: one line, and abort. After clock_nanosleep of POSIX, which
 * can be interrupted. */
void thrum_sleep(uint64_t ns);

/* Sleeps until then; a moment that has passed is a thrum_yield. From: ULT, external. */
void thrum_sleep_until(uint64_t moment);

/* --- timers ------------------------------------------------------------------------------------------- */

/*     static void flush(void *log) {
 *         fflush(log);
 *     }
 *
 *     static thrum_timer_t flushing = THRUM_TIMER_INIT;
 *
 *     thrum_timer_start(&flushing, thrum_now() + THRUM_S, THRUM_S, flush, stdout);
 *     work(NULL);
 *     thrum_timer_stop(&flushing);
 */
typedef struct {
    uint64_t opaque[10];
} thrum_timer_t;

#define THRUM_TIMER_INIT                                                                                     \
    {                                                                                                        \
        { 0 }                                                                                                \
    }

void thrum_timer_init(thrum_timer_t *timer);

/* fn(arg) is called at `moment`, and then every `period` ns; with 0 once only. A ULT of the timer's own calls it, so it
 * may wait, and is late as any that sleeps; one call is over before the next begins, and moments that have passed meanwhile
 * are left out. It must return: thrum_exit there is undefined. The timer is the caller's memory until thrum_timer_stop has
 * returned.
 *
 * From: ULT, external.
 * Errors: EBUSY it has been started, and not stopped since; EINVAL `fn` is NULL; EAGAIN as thrum_spawn. After Go's
 * time.AfterFunc and time.Ticker. */
int thrum_timer_start(thrum_timer_t *timer, uint64_t moment, uint64_t period, void (*fn)(void *arg),
                      void *arg);

/* No call begins any more, and one that is under way has ended when this returns: the timer may be started again. To be
 * called for each that was started, also for one that has made its only call. By one at a time.
 *
 * From: ULT, external.
 * Errors: EINVAL it has not been started; EDEADLK the caller is in `fn`: no call begins any more, but somebody else is to
 * stop it still; EPERM a tasklet, or a scheduler, would have to wait: likewise; ESRCH as thrum_join. */
int thrum_timer_stop(thrum_timer_t *timer);

/* --- joining ------------------------------------------------------------------------------------------ */

/* As thrum_join, but no longer than until then. With ETIMEDOUT the thread goes on, and is to be joined or detached as
 * if this had not been called.
 *
 * From: ULT, external.
 * Errors: as thrum_join; ETIMEDOUT. */
int thrum_join_until(thrum_t thread, void **result, uint64_t moment);

/* As thrum_join if it has ended. Otherwise the thread is as if this had not been called.
 *
 * From: ULT, external.
 * Errors: as thrum_join; EBUSY it has not ended. */
int thrum_try_join(thrum_t thread, void **result);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
