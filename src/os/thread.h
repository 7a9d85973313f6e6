// SPDX-License-Identifier: Apache-2.0
/* Kernel threads of the library's own. */
#ifndef THRUM_OS_THREAD_H
#define THRUM_OS_THREAD_H

#include <pthread.h>
#include <stddef.h>

#include "os/signals.h"

/* One that takes no signals that are meant for the program: all are blocked but those that a fault raises, and libc's
 * own. `stack`: bytes of it, more if libc needs more; 0: as usual. 0 or EAGAIN. */
sigbits thread_quiet_mask(void);
int thread_make_quiet(pthread_t *handle, size_t stack, void *(*fn)(void *), void *arg);

#endif
