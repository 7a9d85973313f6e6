// SPDX-License-Identifier: Apache-2.0
/* The one signal that this library takes for itself: SIGSYS, or the timer's. The program may keep setting what it
 * wants for that signal and finds it set; signals of that number that it is sent come to it through our handler. */
#include <errno.h>

#include "os/syscall.h"
#include "stat.h"

static int taken;
static struct kernel_action wanted; /* by the program */

bool disposition_take(int number, void (*handler)(int, siginfo_t *, void *), bool alone) {
    /* libc's way, because it knows how a handler returns. On the alternate stack, where a thread has one: it may have
     * that because its own have no room for a handler, as those of Go's goroutines. */
    struct sigaction ours = {.sa_sigaction = handler,
                             .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER | SA_ONSTACK};
    sigset_t set;
    if (alone)
        sigfillset(&ours.sa_mask);
    if (sys(SYS_rt_sigaction, number, 0, &wanted, sizeof wanted.mask) != 0 ||
        sigaction(number, &ours, NULL) != 0)
        return false;
    taken = number;
    sigemptyset(&set);
    sigaddset(&set, number);
    sys(SYS_rt_sigprocmask, SIG_UNBLOCK, &set, 0, sizeof wanted.mask);
    return true;
}

/* A child of vfork has the program's memory and a table of signals of its own: what it sets is soon replaced by what
 * it executes, and may not be noted here. */
long disposition_change_sigsafe(const struct kernel_action *to, struct kernel_action *old) {
    struct kernel_action before = wanted;
    const struct probe *probe = probe_of_process();
    if (to != NULL && probe != NULL && probe->program == confined_caller_sigsafe())
        wanted = *to;
    if (old != NULL)
        *old = before;
    return 0;
}

static bool is(void (*handler)(int, siginfo_t *, void *), void (*known)(int)) {
    return (uintptr_t)handler == (uintptr_t)known;
}

void disposition_deliver_sigsafe(int number, siginfo_t *info, void *context) {
    struct kernel_action action = wanted;
    if (number != taken || is(action.handler, SIG_IGN))
        return;
    if (!is(action.handler, SIG_DFL)) {
        action.handler(number, info, context);
        return;
    }
    action = (struct kernel_action){0};
    sys(SYS_rt_sigaction, number, &action, 0, sizeof action.mask);
    sys(SYS_tgkill, sys(SYS_getpid), sys(SYS_gettid), number);
}
