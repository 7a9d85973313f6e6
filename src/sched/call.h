// SPDX-License-Identifier: Apache-2.0
/* One-shot calls, as the runtime's start and end see them. See call.c. */
#ifndef THRUM_SCHED_CALL_H
#define THRUM_SCHED_CALL_H

/* The runtime ends: those that have not begun never will. */
void calls_forget(void);

void calls_fork_child(void);

#endif
