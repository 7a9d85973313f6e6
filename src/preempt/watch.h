// SPDX-License-Identifier: Apache-2.0
/* Looking after workers that no tick reaches, because the thread that runs there blocks the signal.
 *
 * A program may block signals briefly (pthread_sigmask(3), posix_spawn(3), a Go function that is called from C), and
 * wait meanwhile for what a preempted thread holds or must do. On kernel threads that thread would run. Here it may
 * be in the queue of the very worker that waits, and no tick comes that would let it run, or that would ask for
 * relief.
 *
 * So while threads are preempted the monitor (monitor.h) looks now and then. A worker whose ticks are on, that has
 * neither taken one nor switched for a while, and whose kernel thread has the signal blocked, is relieved (relief.c)
 * as long as that lasts. If that kernel thread is runnable, it must also have run meanwhile: one that waits for a CPU in
 * the midst of the tick's handler, or has just been sent the worker, is not stuck. If all relief workers are stuck
 * themselves one more is made: any number of threads may block signals at one time.
 *
 * Asleep: with no thread preempted nothing is looked at. A worker that preempts a thread (1) counts it in
 * preempt.away or preempt.away_in_pools, (2) reads `asleep`, and wakes the monitor if it is set. The monitor (1) sets
 * `asleep`, (2) reads both counts, and looks again if one is not 0. All four are seq_cst: either sees the other.
 *
 * Modelled in tests/model/blocked.pml. */
#ifndef THRUM_PREEMPT_WATCH_H
#define THRUM_PREEMPT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/inside.h"

/* The monitor knows of no preempted thread. */
extern uint32_t watch_asleep;

void watch_start(void);

/* By the monitor: when it looks next; TIMER_NEVER: when it is told. */
uint64_t watch_look(uint64_t now);

SIGSAFE void watch_wake(void);

/* A thread was preempted, and has been counted. Also in the handler. */
static inline void watch_tell(void) {
    if (__builtin_expect(load_seq_cst(&watch_asleep) != 0, 0)) /* pairs with watch_look */
        watch_wake();
}

#endif
