// SPDX-License-Identifier: Apache-2.0
/* See interrupted.h. The answer of a system call has taken the first argument's place: it cannot be made again. */
#include "interrupted.h"

void interrupted_again_sigsafe(ucontext_t *context) {
    (void)context;
}
