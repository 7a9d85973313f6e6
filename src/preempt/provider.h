// SPDX-License-Identifier: Apache-2.0
/* The provider: a kernel thread that makes spares (spares.h), arms preemption at the first need, and adds relief workers. It
 * sleeps until it is asked (requests.h). It alone may wait for locks of libc's, which a preempted unit may hold.
 *
 * Modelled in tests/model: arm.pml, closing.pml. */
#ifndef THRUM_PREEMPT_PROVIDER_H
#define THRUM_PREEMPT_PROVIDER_H

#include <stdbool.h>

/* It calls arm() and add_relief() (struct preempt_callbacks). 0 or EAGAIN. */
int provider_start(bool (*arm)(void), bool (*add_relief)(void));
/* It ends, before the workers do. */
void provider_close(void);
void provider_fork_child(void);

#endif
