// SPDX-License-Identifier: Apache-2.0
/* What is below a stack. */
#ifndef THRUM_ARCH_STACK_H
#define THRUM_ARCH_STACK_H

/* Bytes of its guard, at least. gcc's -fstack-clash-protection counts on so many, and does not touch what is smaller. */
enum { ARCH_STACK_GUARD = 64 * 1024 };

#endif
