// SPDX-License-Identifier: Apache-2.0
/* See backoff.h. */
#include "os/backoff.h"

#include "arch_ticks.h"
#include "os/futex.h"
#include "os/own_wait.h"

enum { RELAXES = 100, YIELDS = 100, NAP_NS = 50000 };

/* sched_yield gives the holder our CPU, unless the kernel never runs it while we are runnable (SCHED_FIFO): hence
 * naps at last. */
void backoff(unsigned tries) {
    const struct timespec nap = {0, NAP_NS};
    if (tries < RELAXES) {
        arch_relax();
        return;
    }
    own_wait_begin();
    if (tries < RELAXES + YIELDS)
        sys(SYS_sched_yield, 0);
    else
        sys(SYS_nanosleep, &nap, NULL);
    own_wait_end();
}
