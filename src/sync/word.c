// SPDX-License-Identifier: Apache-2.0
/* See word.h. */
#include "sync/word.h"

#include "arch_ticks.h"
#include "os/futex.h"

enum { RELAXES = 100, YIELDS = 100, NAP_NS = 50000 };

/* Holders are done in well under a microsecond unless they have lost their CPU. sched_yield gives them ours, but for
 * those that the kernel never runs as long as we want to (SCHED_FIFO): hence naps, at last. */
void word_wait(unsigned tries) {
    const struct timespec nap = {0, NAP_NS};
    if (tries < RELAXES)
        arch_relax();
    else if (tries < RELAXES + YIELDS)
        sys(SYS_sched_yield, 0);
    else
        sys(SYS_nanosleep, &nap, NULL);
}
