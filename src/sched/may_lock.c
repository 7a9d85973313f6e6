// SPDX-License-Identifier: Apache-2.0
/* What lock_acquire asserts in debug builds (os/lock.h, which knows nothing of workers): a worker takes locks in
 * non-preemptible regions only. If a unit were preempted with one, the next that wants it on the same worker would put
 * that to sleep, and the holder would never run. */
#include "os/lock.h"
#include "sched/current.h"

#ifdef THRUM_DEBUG
/* Outside a region the two words may be of different kernel threads: workers both, and neither with a region open. */
bool lock_may_be_taken(void) {
    return worker_here() == NULL || (thrum_nopreempt & ~NOPREEMPT_NOT_PENDING) != 0;
}
#endif
