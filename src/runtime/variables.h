// SPDX-License-Identifier: Apache-2.0
/* Names in the environment. A misspelt one would be passed over in silence, and the program would run as it does without. */
#ifndef THRUM_RUNTIME_VARIABLES_H
#define THRUM_RUNTIME_VARIABLES_H

/* Writes a line about each variable of the environment that begins with THRUM_ and is neither read here nor another part's.
 * Once in a process. */
void variables_check(void);

#endif
