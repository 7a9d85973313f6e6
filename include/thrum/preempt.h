// SPDX-License-Identifier: Apache-2.0
/* libthrum: preemption. A thread that never waits must not keep others from running.
 *
 *     static void *compute(void *left) {
 *         while (*(volatile long *)left > 0) // never waits, and yet other threads run
 *             --*(volatile long *)left;
 *         return NULL;
 *     }
 *
 *     struct thrum_config config = {.preempt = {.mode = THRUM_PREEMPT_LEND, .slice = 1000}};
 *     thrum_init(&config);
 *
 * A real-time signal interrupts each worker that has more than one thread to run, once per time slice. Its handler switches
 * to the next thread; the preempted one resumes later where it was, perhaps on another worker. The mode says what such a
 * thread keeps until then:
 *
 *   mode     keeps its thread-locals         safe for
 *   NONE     is never preempted              code that waits for no lock that a preempted thread may hold
 *   YIELD    no: others use the same ones    code without the C library: malloc breaks within seconds
 *   LEND     while it is preempted           all but PI mutexes and gettid(); see LIMITS in thrum-preemption(7)
 *   OWN_TLS  for life, initially fresh       as LEND; and they survive a wait
 *   KLT      and the kernel thread under it  all; see LIMITS there
 *
 * In KLT each thread that is preempted at the same time needs a kernel thread. In LEND it needs a thread control block, some
 * 5 KiB, and in OWN_TLS each thread does.
 *
 * The default mode (neither set here nor by THRUM_PREEMPT in the environment) is LEND where the processor makes it cheap:
 * x86-64 with FSGSBASE, and aarch64. It is NONE elsewhere. It is also NONE if the program already has a handler for
 * the signal or blocks it, and if the system lacks timers, queued signals or kernel threads for it.
 *
 * YIELD and KLT are the signal-yield and the KLT-switching of Shiina, Iwasaki, Taura and Balaji, "Lightweight Preemptive
 * User-Level Threads", PPoPP 2021.
 *
 * LATENCY. As long as the kernel gives the worker its CPU, a computing thread keeps others from it for one slice, or for
 * less than two if a tick came when it had just begun. A thread that waits in the kernel keeps them for one slice,
 * and for 50 us at each later turn. Slices are rounded up to a multiple of the shortest requested since thrum_init. A worker
 * with one thread is not interrupted while no other thread is runnable, but for one tick, a slice after it was idle.
 *
 * SIGNALS. The signal (THRUM_SIGNAL) belongs to the library. System calls are restarted after it where SA_RESTART does that
 * (signal(7)); poll, epoll_wait, nanosleep, reads of sockets with SO_RCVTIMEO and some others return EINTR. A thread that
 * must not see EINTR calls through thrum_blocking. The program's signal handlers are not preempted, and neither is a thread
 * that blocks the signal. While it does, preempted threads run on other workers, but threads that were never preempted may
 * have to wait for it. thrum-preemption(7) has the details.
 *
 * STACK. A preempted thread's registers are saved on its stack. If less than about 8 KiB (16 with AMX) of it are free, the
 * thread is not preempted until more are.
 *
 * COST. By default each worker has a timer and a sleeping kernel thread from the start. The first preemption creates one
 * kernel thread that makes more of these, and one that watches workers. A mode requested by name creates all of them in
 * thrum_init. Where each worker has one thread at most there is no further cost. A program whose threads rely on running
 * alone between two waits, as they may with one worker, must set THRUM_PREEMPT_NONE.
 */
#ifndef THRUM_PREEMPT_H
#define THRUM_PREEMPT_H

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum thrum_preempt_mode {
    THRUM_PREEMPT_DEFAULT, /* of a thread: the runtime's mode. Of the runtime: THRUM_PREEMPT, or else as above */
    THRUM_PREEMPT_NONE,
    THRUM_PREEMPT_YIELD,
    THRUM_PREEMPT_LEND,
    THRUM_PREEMPT_OWN_TLS,
    THRUM_PREEMPT_KLT,
};

enum { THRUM_SLICE_MIN = 50, THRUM_SLICE_MAX = 1000000 }; /* microseconds */

/* What interrupts the workers. */
enum thrum_tick_source {
    THRUM_TICK_DEFAULT, /* THRUM_TICK, or else TIMER; MONITOR if the system has no timers left */
    THRUM_TICK_TIMER,   /* each worker has a kernel timer; they expire one after another */
    THRUM_TICK_MONITOR, /* a kernel thread of the library's sends signals. It needs a CPU briefly for each one: ticks are
                           late if all CPUs are busy */
};

/* In struct thrum_config. A field that is 0 takes the value of its environment variable, or else the default. */
struct thrum_preempt_config {
    unsigned mode;   /* enum thrum_preempt_mode; THRUM_PREEMPT: auto, none, yield, lend, own-tls, klt */
    unsigned slice;  /* microseconds; THRUM_SLICE; default 10000 */
    unsigned source; /* enum thrum_tick_source; THRUM_TICK: auto, timer, monitor */
    int signal;      /* THRUM_SIGNAL: a number, or rtmin+N; default SIGRTMIN + 4 */
};

/* A region in which the caller is not preempted; a preemption that falls into it takes place at its end. Regions nest. The
 * caller must neither wait nor end inside: one line says so, and the process aborts. No other thread runs on its worker
 * meanwhile: thrum_yield, thrum_switch_to and thrum_safepoint do not switch, and thrum_spawn enqueues the new thread.
 * thrum_migrate of the caller takes effect when it next gives up the worker. An end without a begin prints a line, and the
 * process aborts. From: ULT; elsewhere a region has no effect. */
void thrum_nopreempt_begin(void);
void thrum_nopreempt_end(void);

/* Yields if the caller's slice is over. For loops in threads that are not preempted; costs a load and a branch. It does
 * nothing in a runtime without preemption, unless a sanitizer or Valgrind is why it has none.
 * From: ULT; no effect elsewhere. */
void thrum_safepoint(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
