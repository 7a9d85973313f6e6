// SPDX-License-Identifier: Apache-2.0
/* Waits of the library's own in the kernel, which may be long when CPUs are contended: for a lock or a word whose
 * holder is not preempted, but may have lost its CPU. A tick must not take them for waits for what a preempted thread
 * holds. */
#ifndef THRUM_OS_OWN_WAIT_H
#define THRUM_OS_OWN_WAIT_H

#include <stdbool.h>

/* A wait of the library's begins or ends; no unit is preempted in it. Only libthrum has it (preempt/relief.c). */
void own_wait(bool begins) __attribute__((weak, visibility("hidden")));

static inline void own_wait_begin(void) {
    if (own_wait)
        own_wait(true);
}

static inline void own_wait_end(void) {
    if (own_wait)
        own_wait(false);
}

#endif
