// SPDX-License-Identifier: Apache-2.0
/* SIGSYS must be open at each trapped call: the kernel ends a process that blocks it there. So calls that could block it
 * are trapped as well, where the filter sees them, libc's own included (it blocks all signals while it makes a thread),
 * and made again without it. A thread that asks what it blocks is told what it asked for. */
#include <errno.h>

#include "os/syscall.h"
#include "stat.h"

enum { MASK_BYTES = sizeof(uint64_t) }; /* as the kernel has them */

/* Newer than the oldest headers that thrum is built with. */
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

static _Thread_local bool hidden; /* the program believes SIGSYS blocked */

/* As the program was executed with it. */
void masks_begin(void) {
    uint64_t mask = 0;
    sys(SYS_rt_sigprocmask, SIG_BLOCK, 0, &mask, MASK_BYTES);
    hidden = (mask & bit_of(SIGSYS)) != 0;
}

/* What a handler of the program's has written to its uc_sigmask, when it interrupted a call that waits, holds from then on:
 * it is put where the return from our handler takes it from. */
void masks_follow_sigsafe(ucontext_t *context) {
    uint64_t *mask = (uint64_t *)(void *)&context->uc_sigmask;
    if (sys(SYS_rt_sigprocmask, SIG_BLOCK, 0, mask, MASK_BYTES) != 0 || (*mask & bit_of(SIGSYS)) == 0)
        return;
    hidden = true;
    *mask &= ~bit_of(SIGSYS);
}

/* For a program that is executed, which has the mask then. */
void masks_show_sigsafe(bool really) {
    const uint64_t only = bit_of(SIGSYS);
    if (hidden)
        sys(SYS_rt_sigprocmask, really ? SIG_BLOCK : SIG_UNBLOCK, &only, 0, MASK_BYTES);
}

/* The kernel writes something there, or says that it cannot. */
static long check_old(long address) {
    return address == 0 ? 0 : sys(SYS_rt_sigprocmask, SIG_BLOCK, 0, address, MASK_BYTES);
}

/* The mask for afterwards is put where the return from the handler takes it from. */
long masks_change_sigsafe(ucontext_t *context, const long a[6]) {
    uint64_t *mask = (uint64_t *)(void *)&context->uc_sigmask, before, after;
    const uint64_t *set = (const uint64_t *)a[1];
    if (a[3] != MASK_BYTES)
        return -EINVAL;
    if (set != NULL && !memory_is_readable_sigsafe((uint64_t)a[1], MASK_BYTES))
        return -EFAULT;
    before = after = *mask | (hidden ? bit_of(SIGSYS) : 0);
    if (set != NULL) {
        switch ((int)a[0]) {
        case SIG_BLOCK: after = before | *set; break;
        case SIG_UNBLOCK: after = before & ~*set; break;
        case SIG_SETMASK: after = *set; break;
        default: return -EINVAL;
        }
    }
    hidden = (after & bit_of(SIGSYS)) != 0;
    *mask = after & ~bit_of(SIGSYS);
    const long error = check_old(a[2]);
    if (a[2] != 0 && error == 0)
        *(uint64_t *)a[2] = before;
    return error;
}

/* What the program has for SIGSYS. The kernel says whether `old` can be written to, by what it has itself. */
static long change_own(const struct kernel_action *to, struct kernel_action *old) {
    struct kernel_action before;
    disposition_change_sigsafe(to, &before);
    const long error = old == NULL ? 0 : sys(SYS_rt_sigaction, SIGSYS, 0, old, MASK_BYTES);
    if (old != NULL && error == 0)
        *old = before;
    return error;
}

/* Nor may a handler of the program's run with SIGSYS blocked. */
long masks_action_sigsafe(const long a[6]) {
    const struct kernel_action *to = (const struct kernel_action *)a[1];
    struct kernel_action without;
    if (a[3] != MASK_BYTES)
        return -EINVAL;
    if (to != NULL && !memory_is_readable_sigsafe((uint64_t)a[1], sizeof *to))
        return -EFAULT;
    if (a[0] == SIGSYS)
        return change_own(to, (struct kernel_action *)a[2]);
    if (to != NULL) {
        without = *to;
        without.mask &= ~bit_of(SIGSYS);
        cancel_watch_sigsafe((int)a[0], &without);
        to = &without;
    }
    return sys(SYS_rt_sigaction, a[0], to, a[2], a[3]);
}

/* Calls that wait with another mask. A mask is named by one argument, but that of two is behind a pointer. Where it
 * cannot be read the kernel is left to say so. */
long masks_call_sigsafe(long number, const long a[6]) {
    const bool is_pair = number == SYS_pselect6 || number == SYS_io_pgetevents;
    const int where = number == SYS_rt_sigsuspend ? 0 : number == SYS_ppoll ? 3 : is_pair ? 5 : 4;
    long b[6] = {a[0], a[1], a[2], a[3], a[4], a[5]};
    struct {
        const uint64_t *mask;
        uint64_t size;
    } pair;
    const uint64_t *mask = (const uint64_t *)a[where];
    uint64_t without;
    if (mask != NULL && !memory_is_readable_sigsafe((uint64_t)a[where], is_pair ? sizeof pair : MASK_BYTES))
        return cancel_call_sigsafe(number, a);
    if (is_pair && mask != NULL) {
        pair.mask = *(const uint64_t *const *)a[where];
        pair.size = ((const uint64_t *)a[where])[1];
        mask = pair.mask;
        if (mask != NULL && !memory_is_readable_sigsafe((uint64_t)mask, MASK_BYTES))
            return cancel_call_sigsafe(number, a);
    }
    if (mask != NULL) {
        without = *mask & ~bit_of(SIGSYS);
        pair.mask = &without;
        b[where] = is_pair ? (long)&pair : (long)&without;
    }
    return cancel_call_sigsafe(number, b);
}
