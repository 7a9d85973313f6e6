// SPDX-License-Identifier: Apache-2.0
/* For coroutines.c. See masks.c. */
#ifndef THRUM_RUNTIME_MASKS_H
#define THRUM_RUNTIME_MASKS_H

/* The caller's mask may be that of another worker than the one it is on: it gets the latter's. One of the program's choice stays. */
void masks_take_workers(void);

#endif
