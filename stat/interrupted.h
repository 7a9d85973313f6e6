// SPDX-License-Identifier: Apache-2.0
/* System calls that our timer's signal has broken off.
 *
 * SA_RESTART makes the kernel go on with most. Those that wait for events or for time return EINTR all the same, and a
 * program that takes no signals may not expect that. So they are made again, where the handler's context shows that the
 * thread has just come out of one with EINTR and what it was: no other signal can be the reason, as the handlers of
 * several signals run one upon the other and ours, with the highest number, is set up last and then finds the
 * beginning of another handler interrupted. */
#ifndef THRUM_STAT_INTERRUPTED_H
#define THRUM_STAT_INTERRUPTED_H

#include <ucontext.h>

void interrupted_again_sigsafe(ucontext_t *context);

#endif
