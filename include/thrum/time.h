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
 * thrum_yield. From: ULT, external; a tasklet, or a scheduler: one line, and abort. */
void thrum_sleep(uint64_t ns);

/* Sleeps until then; a moment that has passed is a thrum_yield. From: ULT, external. */
void thrum_sleep_until(uint64_t moment);

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
