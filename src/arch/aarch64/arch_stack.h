// SPDX-License-Identifier: Apache-2.0
/* What is below a stack. */
#ifndef THRUM_ARCH_STACK_H
#define THRUM_ARCH_STACK_H

/* Bytes of its guard, at least. gcc's -fstack-clash-protection relies on 64 KiB, and does not touch what is smaller. Other
 * code, such as most libraries, may touch the far end of a frame first: an array of 64 KiB, with some room for what lies
 * beside it, must not reach across. */
enum { ARCH_STACK_GUARD = 72 * 1024 };

#endif
