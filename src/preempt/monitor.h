// SPDX-License-Identifier: Apache-2.0
/* The monitor: a kernel thread that looks after workers which no tick reaches (watch.h), and that sends ticks to those that have no
 * timer of the kernel's: because the system has none to give, or because the program wants it so (THRUM_TICK=monitor).
 *
 * A worker's `due` says when its next tick is to come (ns, CLOCK_MONOTONIC, an even number; 0: none is), and in its lowest
 * bit whether others follow, one a `period`. Whoever asks for ticks stores it; the monitor alone moves it on, by a cas, so
 * that what was asked for meanwhile stays.
 *
 * Asleep: `until` says when the monitor will look by itself; while it looks that is never, so that everybody pokes it. Who
 * asks (1) stores `due`, (2) reads `until`, and pokes it if that is later. The monitor (1) stores never, (2) reads `word`,
 * (3) reads each `due`, (4) stores `until`, (5) sleeps if `word` is still what it was. If (3) misses a `due`, its owner reads
 * `until` after that store, and so before or after (4): never or the earlier of two in which it is not; it pokes.
 *
 * One signal at a time: `sent` is set before the kernel thread that the worker is on is looked up, and cleared by the
 * handler, by whoever asks, and by a worker that has come to another kernel thread, after it has written down which and
 * that thread's handler finds it there. So signals do not pile up at a kernel thread that does not run, and one that goes
 * to where the worker was, or comes to where it is about to be, is not waited for: the worker, when it clears `sent` and
 * finds it set, sends itself another (tick_has_arrived).
 *
 * Modelled in tests/model/monitor.pml. */
#ifndef THRUM_PREEMPT_MONITOR_H
#define THRUM_PREEMPT_MONITOR_H

#include <stdint.h>

struct worker;

/* That it runs. 0 or EAGAIN. By any kernel thread of the library's, not in a handler. */
int monitor_start(void);

/* When no worker runs any more; also where it does not run. */
void monitor_stop(void);
void monitor_fork_child(void);

/* The next tick at `first` (0: never), then one each `period` of the worker (struct tick) if `repeats`. By anybody, signal
 * handlers too. */
void monitor_set(struct worker *worker, uint64_t first, uint32_t repeats);

/* There are more workers than before. */
void monitor_look_again(void);

#endif
