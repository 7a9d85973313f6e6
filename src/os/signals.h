// SPDX-License-Identifier: Apache-2.0
/* The calling thread's signal mask and pending signals, as the kernel's 64 bits. */
#ifndef THRUM_OS_SIGNALS_H
#define THRUM_OS_SIGNALS_H

#include <signal.h>
#include <stdint.h>

#include "os/syscall.h"

typedef uint64_t sigbits; /* bit n-1 stands for signal n */

/* Signals 32 and 33 are libc's own (cancellation and timers; the setuid broadcast). A thread that blocks the
 * second one hangs every setuid() in the process. */
#define SIGBITS_LIBC ((UINT64_C(1) << 31) | (UINT64_C(1) << 32))
#define SIGBITS_ALL  (~UINT64_C(0))

static inline sigbits signals_mask_set(sigbits mask) {
    sigbits old = 0;
    sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &old, sizeof mask);
    return old;
}

static inline sigbits signals_mask_get(void) {
    sigbits old = 0;
    sys(SYS_rt_sigprocmask, SIG_SETMASK, 0, &old, sizeof old);
    return old;
}

static inline sigbits signals_bit(int signal) {
    return UINT64_C(1) << (signal - 1);
}

static inline void signals_block(sigbits some) {
    sys(SYS_rt_sigprocmask, SIG_BLOCK, &some, 0, sizeof some);
}

static inline void signals_unblock(sigbits some) {
    sys(SYS_rt_sigprocmask, SIG_UNBLOCK, &some, 0, sizeof some);
}

/* Blocked and pending, for this thread or for the process. */
static inline sigbits signals_pending(void) {
    sigbits pending = 0;
    sys(SYS_rt_sigpending, &pending, sizeof pending);
    return pending;
}

/* Those of them that were sent to this thread alone (SigPnd of its status). All bits if that cannot be read. */
sigbits signals_pending_thread(void);

/* Takes the signals that were sent to this thread alone, and are blocked, one by one and discards them: the kernel
 * delivers a thread's own before the process's. Only if more is pending than `known`, since finding out reads a file. */
void signals_drop_pending(sigbits known);

#endif
