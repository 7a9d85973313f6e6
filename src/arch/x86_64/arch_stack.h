// SPDX-License-Identifier: Apache-2.0
/* What is below a stack. */
#ifndef THRUM_ARCH_STACK_H
#define THRUM_ARCH_STACK_H

/* Bytes of its guard, at least. -fstack-clash-protection touches each page; this is for other code. */
enum { ARCH_STACK_GUARD = 8 * 1024 };

#endif
