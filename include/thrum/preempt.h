// SPDX-License-Identifier: Apache-2.0
/* libthrum: preemption. A thread that never waits must not keep others from running.
 *
 *     static void *compute(void *left) {
 *         while (*(volatile long *)left > 0) // never waits, and yet others get their turn
 *             --*(volatile long *)left;
 *         return NULL;
 *     }
 *
 *     struct thrum_config config = {.preempt = {.mode = THRUM_PREEMPT_LEND, .slice = 1000}};
 *     thrum_init(&config);
 *
 * Each worker that has more than one thread to run is interrupted once a slice by a real-time signal, of which the handler
 * lets the next thread run; the preempted one goes on later, perhaps on another worker, where it was. What such a thread
 * takes with it until then is its mode. Without being told (here, or by THRUM_PREEMPT in the environment) it is LEND where
 * the processor makes that cheap (x86-64 with FSGSBASE, aarch64), and NONE elsewhere, where the program has a handler for
 * the signal already or blocks it, or where the system has neither timers nor signals that can be queued, or no kernel
 * threads, for it:
 *
 *   mode     keeps its thread-locals         safe for
 *   NONE     is never preempted              what waits for no lock that a preempted thread may have
 *   YIELD    no: others use the same ones    code without the C library: malloc breaks within seconds
 *   LEND     while it is preempted           all but PI mutexes and gettid(); see LIMITS in thrum-preemption(7)
 *   OWN_TLS  for life, and begins with new    as LEND; and they are the same after a wait
 *   KLT      and the kernel thread under it  all; see LIMITS there
 *
 * In LEND and KLT each thread that is preempted at one time needs a kernel thread, in OWN_TLS each thread.
 *
 * YIELD and KLT are the signal-yield and the KLT-switching of Shiina, Iwasaki, Taura and Balaji, "Lightweight Preemptive
 * User-Level Threads", PPoPP 2021.
 *
 * A thread that computes keeps others from its worker for a slice, and for less than another where a tick came when it had
 * just begun, as long as the kernel gives the worker its CPU. One that waits in the kernel keeps them for a slice, and at
 * each later turn for 50 us. Slices are rounded up to a multiple of the shortest that anybody has asked for since thrum_init.
 * A worker that has one thread to run, and nobody else any, is not interrupted, but for once, a slice after it had been idle.
 *
 * SIGNALS. The signal (THRUM_SIGNAL) belongs to the library. System calls go on after it where SA_RESTART lets them
 * (signal(7)); poll, epoll_wait, nanosleep, reads of sockets with SO_RCVTIMEO and some others return EINTR. A thread that must
 * not see that calls by thrum_blocking. A signal handler of the program's is not preempted. A thread that blocks the signal is
 * not preempted either; while it does, those that were preempted run elsewhere, but those that never were may have to wait
 * for it. thrum-preemption(7) has all of it.
 *
 * STACK. A preempted thread's registers lie on its stack: where less than some 8 KiB (16 with AMX) are left of it, the
 * thread goes on until more are.
 *
 * PRICE. Unless told, from the start a timer and a sleeping kernel thread for each worker; and, when a thread is preempted for
 * the first time, one that makes more of these and one that looks after workers. A mode that is asked for by its name makes all
 * of them at thrum_init. Where each worker has one thread at most, nothing besides. Programs whose threads count on being alone
 * between two waits, as with one worker they may have, say THRUM_PREEMPT_NONE.
 */
#ifndef THRUM_PREEMPT_H
#define THRUM_PREEMPT_H

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum thrum_preempt_mode {
    THRUM_PREEMPT_DEFAULT, /* of a thread: as the runtime. Of the runtime: as THRUM_PREEMPT says, else as above */
    THRUM_PREEMPT_NONE,
    THRUM_PREEMPT_YIELD,
    THRUM_PREEMPT_LEND,
    THRUM_PREEMPT_OWN_TLS,
    THRUM_PREEMPT_KLT,
};

enum { THRUM_SLICE_MIN = 50, THRUM_SLICE_MAX = 1000000 }; /* microseconds */

/* How interrupts come. */
enum thrum_tick_source {
    THRUM_TICK_DEFAULT, /* as THRUM_TICK says; else TIMER, and MONITOR where the system has no timers left */
    THRUM_TICK_TIMER,   /* each worker has a timer of the kernel's, one after another */
    THRUM_TICK_MONITOR, /* a kernel thread of the library's sends signals. It needs a CPU for a moment each time: where all
                           are busy ticks come late */
};

/* In struct thrum_config. What is 0 is as the environment says. */
struct thrum_preempt_config {
    unsigned mode;   /* enum thrum_preempt_mode; THRUM_PREEMPT: auto, none, yield, lend, own-tls, klt */
    unsigned slice;  /* microseconds; THRUM_SLICE; 10000 */
    unsigned source; /* enum thrum_tick_source; THRUM_TICK: auto, timer, monitor */
    int signal;      /* THRUM_SIGNAL: a number, or rtmin+N; SIGRTMIN + 4 */
};

/* In a region the caller is not preempted: a preemption that comes meanwhile takes place at its end. Regions may stand in
 * each other. The caller must not wait in one, nor end: one line says so, and the process aborts. No other thread runs on
 * its worker meanwhile: thrum_yield, thrum_switch_to and thrum_safepoint let none run, thrum_spawn puts what it makes into
 * a queue, and thrum_migrate of the caller takes effect when it next gives way. An end without its begin is undefined. From: ULT; elsewhere without effect. */
void thrum_nopreempt_begin(void);
void thrum_nopreempt_end(void);

/* If others are to run by now, they do. For loops in threads that are not preempted; costs a load and a branch. Where the
 * runtime preempts nobody it does nothing, unless that is so because of a sanitizer or Valgrind.
 * From: ULT; elsewhere without effect. */
void thrum_safepoint(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
