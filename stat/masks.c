// SPDX-License-Identifier: Apache-2.0
/* SIGSYS must be open at each trapped call: the kernel ends a process that blocks it there. So all calls that could
 * block it are trapped as well, libc's own included (it blocks all signals while it makes a thread), and made again
 * without it. A thread that asks what it blocks is told what it asked for. */
#include <errno.h>

#include "os/syscall.h"
#include "stat.h"

enum { MASK_BYTES = sizeof(uint64_t) }; /* as the kernel has them */

static _Thread_local bool hidden; /* the program believes SIGSYS blocked */

/* What is to hold from then on is put where the return from the handler takes it from. */
long masks_change_sigsafe(ucontext_t *context, const long a[6]) {
    uint64_t *mask = (uint64_t *)(void *)&context->uc_sigmask, before, after;
    const uint64_t *set = (const uint64_t *)a[1];
    if (a[3] != MASK_BYTES)
        return -EINVAL;
    before = after = *mask | (hidden ? bit_of(SIGSYS) : 0);
    if (set != NULL) {
        switch ((int)a[0]) {
        case SIG_BLOCK: after = before | *set; break;
        case SIG_UNBLOCK: after = before & ~*set; break;
        case SIG_SETMASK: after = *set; break;
        default: return -EINVAL;
        }
    }
    if (a[2] != 0)
        *(uint64_t *)a[2] = before;
    hidden = (after & bit_of(SIGSYS)) != 0;
    *mask = after & ~bit_of(SIGSYS);
    return 0;
}

/* Nor may a handler of the program's run with SIGSYS blocked. */
long masks_action_sigsafe(const long a[6]) {
    const struct kernel_action *to = (const struct kernel_action *)a[1];
    struct kernel_action without;
    if (a[3] != MASK_BYTES)
        return -EINVAL;
    if (a[0] == SIGSYS)
        return disposition_change_sigsafe(to, (struct kernel_action *)a[2]);
    if (to != NULL) {
        without = *to;
        without.mask &= ~bit_of(SIGSYS);
        cancel_watch_sigsafe((int)a[0], &without);
        to = &without;
    }
    return sys(SYS_rt_sigaction, a[0], to, a[2], a[3]);
}

/* Calls that wait with another mask. A mask is named by one argument, but pselect6's is behind a pointer. */
long masks_call_sigsafe(long number, const long a[6]) {
    const int where = number == SYS_rt_sigsuspend ? 0
                      : number == SYS_ppoll       ? 3
                      : number == SYS_pselect6    ? 5
                                                  : 4;
    long b[6] = {a[0], a[1], a[2], a[3], a[4], a[5]};
    struct {
        const uint64_t *mask;
        uint64_t size;
    } pair;
    const uint64_t *mask = (const uint64_t *)a[where];
    uint64_t without;
    if (number == SYS_pselect6 && mask != NULL) {
        pair.mask = *(const uint64_t *const *)a[where];
        pair.size = ((const uint64_t *)a[where])[1];
        mask = pair.mask;
    }
    if (mask != NULL) {
        without = *mask & ~bit_of(SIGSYS);
        pair.mask = &without;
        b[where] = number == SYS_pselect6 ? (long)&pair : (long)&without;
    }
    return cancel_call_sigsafe(number, b);
}
