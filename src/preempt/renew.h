// SPDX-License-Identifier: Apache-2.0
/* Making a used thread control block as new (blocks.h), by the pieces with which the cache makes a used kernel thread as new
 * (kthread/fresh). */
#ifndef THRUM_PREEMPT_RENEW_H
#define THRUM_PREEMPT_RENEW_H

#include <stdbool.h>

/* Once. False: this libc is not understood. */
bool renew_learn(void);

#endif
