// SPDX-License-Identifier: Apache-2.0
/* System calls that our timer's signal has broken off.
 *
 * SA_RESTART makes the kernel restart most. Those that wait for events, for signals or for time return EINTR all the
 * same, and a program that takes no signals may not expect that. So they are made again, where the handler's context
 * shows that the thread has just come out of one with EINTR and what it was.
 *
 * They take no longer by that. A thread that waits uses no CPU time, so its timer expires while it is about to wait or has
 * just ended to; and the kernels that send such a signal on their way back to the program (on x86-64 since 5.10 or so)
 * break nothing off.
 *
 * No signal of the program's may be the reason, for then the program must see the EINTR:
 *   - one that comes while our handler runs is blocked (timer.c) and finds the call to be made again;
 *   - one with a lower number that comes together with ours is handled before: ours, set up last, finds the beginning of
 *     that handler interrupted, if it is not blocked in it, which signals.c sees to.
 * What is left is a tick within the kernel's return from a handler of the program's that has broken off a call. */
#ifndef THRUM_STAT_INTERRUPTED_H
#define THRUM_STAT_INTERRUPTED_H

#include <ucontext.h>

void interrupted_again_sigsafe(ucontext_t *context);

#endif
