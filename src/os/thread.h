// SPDX-License-Identifier: Apache-2.0
/* Kernel threads of the library's own. */
#ifndef THRUM_OS_THREAD_H
#define THRUM_OS_THREAD_H

#include <pthread.h>
#include <stddef.h>

#include "os/signals.h"

/* The signals to block for a thread that must not take the program's: all but those that faults raise, and libc's
 * own. */
sigbits thread_quiet_mask(void);

/* One that blocks these. `stack`: bytes of it, more if libc needs more; 0: as usual. 0 or EAGAIN. */
int thread_make_quiet(pthread_t *handle, size_t stack, void *(*fn)(void *), void *arg);

#endif
