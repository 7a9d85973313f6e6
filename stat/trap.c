// SPDX-License-Identifier: Apache-2.0
/* PROBE_EXACT: system calls that the filter (filter.c) traps arrive here as SIGSYS, are examined and made.
 *
 * A call that waits does so in the handler, below its caller's frame, or on the alternate stack where the thread has
 * one. What may happen to a waiting thread happens much as without us: a signal's handler runs on top, SA_RESTART
 * decides whether the call is restarted, and the handler may change the mask (masks.c); cancellation unwinds through
 * this frame, which has the tables for it; a limit of time is the kernel's. One thing differs: what a handler writes
 * to the registers that it interrupted, since these are the handler's here. */
#include <linux/futex.h>
#include <sys/personality.h>

#include "os/syscall.h"
#include "stat.h"

/* Newer than the oldest kernel headers that thrum is built with. */
#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

enum { BY_SECCOMP = 1 }; /* SYS_SECCOMP in the kernel's headers, which cannot stand beside libc's */

static struct probe *probe;

/* Of calls that are trapped whatever they are asked for. */
static void count(int number) {
    if (number < PROBE_CALLS)
        fetch_add_relaxed(&probe->calls[number], 1);
}

/* Those that wait are looked at more closely. */
static long futex_call_sigsafe(ucontext_t *context, const long a[6]) {
    const unsigned operation = (unsigned)(a[1] & FUTEX_CMD_MASK);
    long answer;
    fetch_add_relaxed(&probe->futex[operation < PROBE_FUTEX ? operation : PROBE_FUTEX - 1], 1);
    switch (operation) {
    case FUTEX_WAIT:
    case FUTEX_LOCK_PI:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAIT_REQUEUE_PI:
    case FUTEX_LOCK_PI2:
        answer = waits_call_sigsafe(probe, context, a);
        masks_follow_sigsafe(context);
        return answer;
    default: return sys(SYS_futex, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
}

static void on_trap(int number, siginfo_t *info, void *argument) {
    ucontext_t *context = argument;
    long a[6], answer;
    if (info->si_code != BY_SECCOMP || info->si_errno != TRAP_MARK) {
        disposition_deliver_sigsafe(number, info, argument);
        return;
    }
    registers_arguments(context, a);
    switch (info->si_syscall) {
    case SYS_futex: answer = futex_call_sigsafe(context, a); break;
    case SYS_sched_yield:
        count(info->si_syscall);
        answer = sys(SYS_sched_yield);
        break;
    case SYS_rt_sigprocmask:
        count(info->si_syscall);
        answer = masks_change_sigsafe(context, a);
        break;
    case SYS_rt_sigaction:
        count(info->si_syscall);
        answer = masks_action_sigsafe(a);
        break;
    case SYS_execve:
    case SYS_execveat: answer = executed_call_sigsafe(probe, info->si_syscall, a); break;
    default:
        answer = masks_call_sigsafe(info->si_syscall, a);
        masks_follow_sigsafe(context);
        break;
    }
    registers_answer(context, answer);
}

/* Without randomization the filter would take a program that this one executes for this one. */
static bool is_fixed(void) {
    return (sys(SYS_personality, 0xffffffff) & ADDR_NO_RANDOMIZE) != 0;
}

void trap_start(struct probe *shared) {
    bool no_new_privileges = false;
    probe = shared;
    waits_clear(probe);
    waits_thread_begins();
    if (is_fixed()) {
        probe_failed(PROBE_FIXED, 0);
        return;
    }
    if (!text.movable && calls_in_program()) {
        probe_failed(PROBE_OWN_CALLS, 0);
        return;
    }
    masks_begin();
    /* Nothing is blocked: a trapped call may wait for long, and a handler that interrupts it may make one itself. */
    if (!disposition_take(SIGSYS, on_trap, false)) {
        probe_failed(PROBE_NO_FILTER, 0);
        return;
    }
    long error = filter_install(&no_new_privileges, &probe->untrapped);
    probe->no_new_privileges = no_new_privileges;
    if (error != 0)
        probe_failed(PROBE_NO_FILTER, error);
}
