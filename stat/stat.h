// SPDX-License-Identifier: Apache-2.0
/* libthrum-stat.so: what its files share.
 *
 * `thrum stat` preloads it into the program that it looks at, for one of the purposes of enum probe_mode: to see each
 * futex wait (trap.c), or to sample where threads spend CPU time (timer.c) where perf events are refused; for both, and
 * by itself, to see where threads are made (makers.c); or where memory is allocated (allocations.c). In all other processes that load it, it does nothing. What it
 * finds goes into memory that it shares with the command (probe.h).
 *
 * Signal handlers of this library run wherever the program is: they call nothing but system calls, clock_gettime,
 * pthread_getcpuclockid and functions like memcpy, and take no lock. */
#ifndef THRUM_STAT_INTERNAL_H
#define THRUM_STAT_INTERNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <ucontext.h>

#include "base/atomic.h"
#include "probe.h"
#include "registers.h"

#define INTERPOSE __attribute__((visibility("default")))

/* --- attach.c --- */
struct probe *probe_of_process(void); /* NULL where this process is not the one asked about */
bool probe_wants(enum probe_mode mode);
void probe_failed(enum probe_trouble trouble, long error);

void maps_leave_sigsafe(void); /* the program is about to end */

/* --- confined.c: without a system call that the program may have forbidden --- */
void confined_begin(void);
bool confined_sigsafe(void);            /* the program may have forbidden some */
int32_t confined_process_sigsafe(void); /* as getpid */
int32_t confined_caller_sigsafe(void); /* ... of a child that shares the memory, too, where it may be asked */
int32_t confined_thread_sigsafe(void); /* as gettid */

/* --- memory.c --- */
bool memory_is_readable_sigsafe(uint64_t address, uint64_t size);
void memory_copy_string_sigsafe(char *to, uint64_t from, uint64_t room);

/* --- text.c: where code is --- */
struct span {
    uint64_t begin, end;
};
struct text {
    struct span program, libraries, own; /* libraries: all between the lowest and the highest, own included */
    bool movable;                        /* the program itself is position independent */
};
extern struct text text;
void text_find(void);
bool text_holds_sigsafe(uint64_t address); /* the program's code, or that of a library */
static inline bool in_span(const struct span *span, uint64_t address) {
    return address - span->begin < span->end - span->begin;
}

/* --- tasks.c: threads that were there before this library started. At start only --- */
void tasks_each(void (*look)(int thread, void *argument), void *argument); /* but the caller */
bool tasks_keep_blocked(int thread, int signal_number);

/* --- calls.c --- */
bool calls_in_program(void); /* system calls in the program's own code */

/* --- stack.c --- */
void stack_of_main(const void *top);
void stack_of_thread(uint64_t size); /* the caller's, which has just begun */
/* The return addresses that may be on it, innermost first, as one number; those of the first `most` of them. */
uint64_t stack_key_sigsafe(const struct registers *at, unsigned most);
void stack_copy_sigsafe(struct probe_stack *to, const struct registers *at);

/* --- disposition.c: the one signal that is ours, as the program believes it to be --- */
struct kernel_action { /* as rt_sigaction(2) takes it */
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};
static inline uint64_t bit_of(int number) {
    return UINT64_C(1) << (number - 1);
}
/* Takes the signal; what the program had for it is kept. SA_RESTART, on the alternate stack, and in the handler either all
 * signals are blocked, or none. */
bool disposition_take(int number, void (*handler)(int, siginfo_t *, void *), bool alone);
/* What rt_sigaction would have done for it. */
long disposition_change_sigsafe(const struct kernel_action *to, struct kernel_action *old);
/* A signal of that number that was sent. */
void disposition_deliver_sigsafe(int number, siginfo_t *info, void *context);

/* --- cancel.c: system calls that wait, and pthread_cancel --- */
void cancel_watch_sigsafe(int number, struct kernel_action *action); /* which the program is about to set */
long cancel_call_sigsafe(long number, const long a[6]);
/* wait.S */
long wait_call_sigsafe(long number, const long arguments[6], const uint32_t *broken_off);

/* --- trap.c, filter.c, masks.c, waits.c, executed.c: PROBE_EXACT --- */
void trap_start(struct probe *probe);
enum { TRAP_MARK = 0x7472 }; /* by which a SIGSYS of our filter is told from one of the program's own */
/* 0 or an errno value. *untrapped: threads that were there before, and are left out. */
long filter_install(bool *no_new_privileges, uint64_t *untrapped);
void masks_begin(void);
long masks_change_sigsafe(ucontext_t *context, const long a[6]);
void masks_follow_sigsafe(ucontext_t *context);
long masks_action_sigsafe(const long a[6]);
long masks_call_sigsafe(long number, const long a[6]);
void masks_show_sigsafe(bool really); /* the kernel blocks what the program believes to be blocked, or not */
long waits_call_sigsafe(struct probe *probe, const ucontext_t *context, const long a[6]);
void waits_clear(struct probe *probe);
void waits_thread_begins(void); /* the caller, which has just begun */
long executed_call_sigsafe(struct probe *probe, long number, const long a[6]);
void executed_begin(struct probe *probe);

/* --- makers.c --- */
void makers_count(struct probe *probe, const struct registers *at, const void *frame); /* the caller's own */
void makers_clear(struct probe *probe);

/* --- allocations.c: PROBE_ALLOCATIONS --- */
void allocations_start(struct probe *probe);

/* --- timer.c: PROBE_TIMER --- */
void timer_start(struct probe *probe);
void timer_thread_begins(void);
int timer_signal(void); /* 0: none is used */

static inline uint64_t clock_ns_sigsafe(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

#endif
