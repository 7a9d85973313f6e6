// SPDX-License-Identifier: Apache-2.0
/* PROBE_TIMER: the functions by which a program would block our signal, take it, or wait for it. They leave it out; for
 * all else, and for PROBE_EXACT, where masks.c sees to that, they pass on. */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include "real.h"
#include "stat.h"

/* The same set without our signal. One that cannot be read is handed on: libc or the kernel says so. */
static const sigset_t *without(const sigset_t *set, sigset_t *copy) {
    if (set == NULL || timer_signal() == 0 || !memory_is_readable_sigsafe((uintptr_t)set, sizeof *set))
        return set;
    *copy = *set;
    sigdelset(copy, timer_signal());
    return copy;
}

INTERPOSE int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old) {
    sigset_t copy;
    return REAL(sigprocmask)(how, how == SIG_UNBLOCK ? set : without(set, &copy), old);
}

INTERPOSE int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old) {
    sigset_t copy;
    return REAL(pthread_sigmask)(how, how == SIG_UNBLOCK ? set : without(set, &copy), old);
}

INTERPOSE int sigwait(const sigset_t *restrict set, int *restrict number) {
    sigset_t copy;
    return REAL(sigwait)(without(set, &copy), number);
}

INTERPOSE int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info) {
    sigset_t copy;
    return REAL(sigwaitinfo)(without(set, &copy), info);
}

INTERPOSE int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
                           const struct timespec *restrict limit) {
    sigset_t copy;
    return REAL(sigtimedwait)(without(set, &copy), info, limit);
}

/* --- what the program has for our signal ---------------------------------------------------------------- */

INTERPOSE int sigaction(int number, const struct sigaction *restrict to, struct sigaction *restrict old) {
    struct kernel_action wanted = {0}, before;
    struct sigaction open;
    if (timer_signal() == 0)
        return REAL(sigaction)(number, to, old);
    if (number != timer_signal()) {
        if (to != NULL) {
            open = *to;
            sigdelset(&open.sa_mask, timer_signal());
            to = &open;
        }
        return REAL(sigaction)(number, to, old);
    }
    if (to != NULL) {
        wanted.handler = to->sa_sigaction;
        wanted.flags = (unsigned long)to->sa_flags;
    }
    disposition_change_sigsafe(to != NULL ? &wanted : NULL, &before);
    if (old != NULL) {
        *old = (struct sigaction){.sa_sigaction = before.handler, .sa_flags = (int)before.flags};
        sigemptyset(&old->sa_mask);
    }
    return 0;
}

INTERPOSE sighandler_t signal(int number, sighandler_t handler) {
    if (number != timer_signal() || number == 0)
        return REAL(signal)(number, handler);
    struct sigaction to = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
    sigaction(number, &to, &old);
    return old.sa_handler;
}
