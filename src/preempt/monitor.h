// SPDX-License-Identifier: Apache-2.0
/* The monitor: a kernel thread that looks after workers which no tick reaches (watch.h), and that sends ticks to
 * workers without a kernel timer: because the system has none left, or because the program requests it
 * (THRUM_TICK=monitor).
 *
 * A worker's `due` says when its next tick comes (ns, CLOCK_MONOTONIC, an even number; 0: none), and in its lowest
 * bit whether others follow, one a `period`. A requester stores it; only the monitor advances it, by a cas, so that a
 * concurrent request is not overwritten.
 *
 * Asleep: `until` says when the monitor will look by itself; while it looks that is never, so that every requester
 * pokes it. A requester (1) stores `due`, (2) reads `until`, and pokes the monitor if that is later. The monitor (1)
 * stores never, (2) reads `word`, (3) reads each `due`, (4) stores `until`, (5) sleeps if `word` is unchanged. If (3)
 * misses a `due`, its owner reads `until` after that store, and so before or after (4): never, or the earliest of the
 * others; it pokes.
 *
 * One signal at a time: `sent` is set before the worker's kernel thread is looked up. It is cleared by the handler,
 * by a requester, and by a worker that has come to another kernel thread, after it has recorded which one and that
 * thread's handler finds it there. So signals do not pile up at a kernel thread that does not run. A signal that goes
 * to where the worker was, or comes to where it is about to be, is not waited for: the worker, when it clears `sent`
 * and finds it set, sends itself another (tick_has_arrived).
 *
 * Modelled in tests/model/monitor.pml. */
#ifndef THRUM_PREEMPT_MONITOR_H
#define THRUM_PREEMPT_MONITOR_H

#include <stdint.h>

#include "base/inside.h"

struct worker;

/* That it runs. 0 or EAGAIN. By any kernel thread of the library's, not in a handler. */
int monitor_start(void);

/* When no worker runs any more; also where it does not run. */
void monitor_stop(void);
void monitor_fork_child(void);

/* The next tick at `first` (0: never), then one each `period` of the worker (struct tick) if `repeats`. By any
 * thread, signal handlers too. */
SIGSAFE void monitor_set(struct worker *worker, uint64_t first, uint32_t repeats);

/* There are more workers than before. */
SIGSAFE void monitor_look_again(void);

#endif
