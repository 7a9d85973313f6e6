// SPDX-License-Identifier: Apache-2.0
/* A cheap counter that all CPUs share, and what a spinning loop does in between. Its rate is found out at run
 * time (os/ticks.h). */
#ifndef THRUM_ARCH_TICKS_H
#define THRUM_ARCH_TICKS_H

#include <stdint.h>

/* The time stamp counter. Not ordered with other instructions: good for estimates, not for proofs. */
static inline uint64_t arch_ticks(void) {
    return __builtin_ia32_rdtsc();
}

static inline void arch_relax(void) {
    __builtin_ia32_pause();
}

#endif
