// SPDX-License-Identifier: Apache-2.0
/* Ending a ULT from within. See exit.c. */
#ifndef THRUM_SCHED_EXIT_H
#define THRUM_SCHED_EXIT_H

#include <stdbool.h>

/* Looks up what exit.c needs of the program's other libraries. */
void exit_init(void);

/* The calling kernel thread runs units from here on, or no more. If it ends in between, a line says why, and the process
 * aborts. */
void exit_watch(bool begins);
/* The key (pthread_key_t) whose value says so; r/o while there are workers. UINT_MAX: there is none. */
extern unsigned exit_watch_key;

#endif
