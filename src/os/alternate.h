// SPDX-License-Identifier: Apache-2.0
/* An alternate signal stack for the caller's kernel thread. */
#ifndef THRUM_OS_ALTERNATE_H
#define THRUM_OS_ALTERNATE_H

#include <stdbool.h>

/* *stack: the memory, NULL if there is one already. False: there is no memory. */
bool alternate_stack_begin(char **stack);
void alternate_stack_end(char *stack);

#endif
