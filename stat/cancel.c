// SPDX-License-Identifier: Apache-2.0
/* pthread_cancel, while a call that waits is made by our handler.
 *
 * Up to glibc 2.40 the C library allows to be cancelled at any moment while it waits in a call, and its signal handler
 * then unwinds the stack, our frames included. From 2.41 on that handler acts only where it interrupts the C library's
 * own call, before it is made; and where a call ends with EINTR the C library looks whether it was cancelled. So there
 * the signal breaks off the call that is made in its place, or is about to be:
 *
 *   1. before our handler for SIGSYS runs, the signal finds the C library's call: it acts as ever;
 *   2. in this library's code before wait_begin: it leaves a mark, which is looked at at wait_begin;
 *   3. from there to the call: it moves the thread to wait_broken;
 *   4. in the call: the kernel ends that with EINTR, as the signal has no SA_RESTART. */
#include <gnu/libc-version.h>
#include <linux/futex.h>

#include "os/syscall.h"
#include "stat.h"

/* Newer than the oldest kernel headers that thrum is built with. */
#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

extern const char wait_begin[], wait_end[], wait_broken[];

enum { CANCELLATION = 32 }; /* pthread_cancel's signal in glibc */

static _Thread_local uint32_t broken_off;
static void (*handler_of_libc)(int, siginfo_t *, void *);

/* "2.41" or later. */
static bool within_call(void) {
    const char *version = gnu_get_libc_version();
    unsigned minor = 0;
    for (const char *digit = version + 2; *digit >= '0' && *digit <= '9'; digit++)
        minor = minor * 10 + (unsigned)(*digit - '0');
    return version[0] != '2' || minor >= 41;
}

static void on_cancel(int number, siginfo_t *info, void *argument) {
    ucontext_t *context = argument;
    const uint64_t pc = registers_of(context).pc;
    handler_of_libc(number, info, argument);
    if (pc >= (uintptr_t)wait_begin && pc < (uintptr_t)wait_end)
        registers_go_to(context, (uintptr_t)wait_broken);
    else if (in_span(&text.own, pc))
        broken_off = 1;
}

/* The child of posix_spawn, system or popen has the program's memory and sets all signals to SIG_IGN or SIG_DFL: what the
 * program has is not to be forgotten for that. */
static bool has_function(const struct kernel_action *action) {
    const uintptr_t handler = (uintptr_t)action->handler;
    return handler != (uintptr_t)SIG_DFL && handler != (uintptr_t)SIG_IGN;
}

void cancel_watch_sigsafe(int number, struct kernel_action *action) {
    if (number != CANCELLATION || !has_function(action) || !within_call())
        return;
    handler_of_libc = action->handler;
    action->handler = on_cancel;
    action->flags &= ~(unsigned long)SA_RESTART;
}

/* These never end with EINTR, and libc takes it for success: the caller would continue without the lock. */
static bool is_lock_with_inheritance(long number, const long a[6]) {
    const long operation = a[1] & FUTEX_CMD_MASK;
    return number == SYS_futex && (operation == FUTEX_LOCK_PI || operation == FUTEX_LOCK_PI2);
}

/* A mark that a lock leaves alone is there for the next call that waits. */
long cancel_call_sigsafe(long number, const long a[6]) {
    if (is_lock_with_inheritance(number, a))
        return sys(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    long answer = wait_call_sigsafe(number, a, &broken_off);
    broken_off = 0;
    return answer;
}
