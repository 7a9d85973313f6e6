// SPDX-License-Identifier: Apache-2.0
/* Ending a ULT from within. See exit.c. */
#ifndef THRUM_SCHED_EXIT_H
#define THRUM_SCHED_EXIT_H

/* Looks up what exit.c needs of the program's other libraries. */
void exit_init(void);

#endif
