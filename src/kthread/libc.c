// SPDX-License-Identifier: Apache-2.0
/* See libc.h: the table as libthrum has it, filled by preempt/renew.c. The cache has its own. */
#include "kthread/libc.h"

struct libc_threads libc;
