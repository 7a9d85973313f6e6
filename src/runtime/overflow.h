// SPDX-License-Identifier: Apache-2.0
/* A thread that needs more stack than it has ends the process with a line that says so, instead of a bare crash.
 *
 * It runs into the guard below its stack. The handler of SIGSEGV, which runs on an alternate signal stack of each worker,
 * recognises the fault, writes the line, and passes the signal on: to the handler that the program had installed before
 * thrum_init, or else to the kernel, which ends the process. All other faults are passed on silently. A program that
 * installs a handler later replaces ours, unless its handler passes the signal on in turn. THRUM_OVERFLOW=off turns all of
 * this off.
 *
 * Detected are overflows of stacks of our own, by code that touches something in each 8 KiB (ARCH_STACK_GUARD) on its way
 * down. Code with larger arrays must be compiled with -fstack-clash-protection, as pkg-config's and CMake's thrum request,
 * or it may step across the guard. Not detected: a tasklet's, which runs on another unit's stack. */
#ifndef THRUM_RUNTIME_OVERFLOW_H
#define THRUM_RUNTIME_OVERFLOW_H

#include <stddef.h>

/* What the environment says. 0, or EINVAL after a line about it. */
int overflow_configure(void);

/* Before there are workers; when there are none any more, after stack_destroy(). The handler stays if stacks of threads
 * that had not ended remain (context/remains.h): it also recognises accesses to those, by objects that the threads still
 * wait for. */
void overflow_start(void);
void overflow_stop(void);

/* Bytes of an alternate signal stack, a multiple of the page size. 0: none is wanted. */
size_t overflow_stack_bytes(void);

/* The calling kernel thread, a worker, takes signals on this one, which begins at `low`; unless it has an alternate
 * stack already. Its lowest page becomes a guard. And no longer. */
void overflow_thread_begin(char *low);
void overflow_thread_end(const char *low);

#endif
