// SPDX-License-Identifier: Apache-2.0
/* Addresses of the stacks of threads that had not ended when their runtime did.
 *
 * Such a thread may have waited for an object that outlives the runtime: the object's queue still leads to the thread's
 * stack. Another mapping at that address would be overwritten by the next waker. So the memory goes back to the system,
 * but the addresses stay reserved, and an access faults. The handler of SIGSEGV (runtime/overflow.h) then says what
 * happened.
 *
 * The latest REMAINS_MOST ranges are kept, which bounds the address space of a program that starts many runtimes. */
#ifndef THRUM_CONTEXT_REMAINS_H
#define THRUM_CONTEXT_REMAINS_H

#include <stdbool.h>
#include <stddef.h>

enum { REMAINS_MOST = 64 };

/* `memory` is a mapping; no thread uses it any more. While no runtime is running or starting. */
void remains_leave(void *memory, size_t bytes);

/* Of all ranges. */
size_t remains_bytes(void);

/* May run in a signal handler. */
bool remains_have_sigsafe(const void *address);

#endif
