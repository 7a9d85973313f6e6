// SPDX-License-Identifier: Apache-2.0
/* Time as cheap as possible, for decisions that may be wrong: arch_ticks() and how many of them are a microsecond.
 * The rate is measured against CLOCK_MONOTONIC between the first call and any later one: no time is spent on it. Any
 * thread may call these, signal handlers too. */
#ifndef THRUM_OS_TICKS_H
#define THRUM_OS_TICKS_H

#include <stdint.h>

#include "arch_ticks.h"
#include "base/inside.h"

/* Ticks per microsecond, or 0 while it is too early to tell (less than a millisecond after the first call). */
SIGSAFE uint64_t ticks_per_us(void);

/* Both clocks at one time, as near as can be seen. */
struct ticks_moment {
    uint64_t ticks, ns; /* CLOCK_MONOTONIC */
    uint64_t apart;     /* how many ticks `ticks` may be wrong */
};
SIGSAFE struct ticks_moment ticks_now(void);

#endif
