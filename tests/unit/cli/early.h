// SPDX-License-Identifier: Apache-2.0
//
// See early.c.
#ifndef CLI_EARLY_H
#define CLI_EARLY_H

unsigned early_waits(void); // so often the thread has waited
void early_until_burnt(void);

#endif
