/* SPDX-License-Identifier: Apache-2.0 */
/* What is inline in sched/worker.h and sched/current.h, for tests in C++. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct thrum_unit;
struct timers;
struct worker;

/* enter() and leave(). */
struct worker *inside_enter(void);
void inside_leave(void);
/* How many regions are open: in none may the caller's worker be taken from it. */
unsigned inside_regions(void);
/* The caller's unit, announced: it is about to wait. */
struct thrum_unit *inside_announce(struct worker *worker);
void inside_wake(struct worker *worker, struct thrum_unit *unit);
struct timers *inside_timers(struct worker *worker);
/* The worker of the caller takes this signal for one that is blocked on its kernel thread. */
int inside_worker_blocks(int signal);
/* A tick does not preempt a thread whose program counter is there. */
int inside_is_spared(uintptr_t pc);
/* On the caller's worker the slice of a thread that is not preempted was over: the next safepoint gives way. */
void inside_wants_safepoint(void);
/* Is a handler found between the caller's frame and `top`, on the caller's stack, by what a tick looks for? */
int inside_finds_handler(const char *top);
/* The runtime does without membarrier. */
int inside_is_fenced(void);

/* How long the worker lets a unit wait in the kernel at a later turn of its (struct tick); 0: the shortest slice. */
unsigned long inside_kernel_wait(unsigned worker);

/* The caller, which has read its CPU clock, has seen this time. */
void inside_clock_was(int64_t ns);

#ifdef __cplusplus
}
#endif
