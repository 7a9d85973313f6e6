// SPDX-License-Identifier: Apache-2.0
/* Port permissions are the kernel thread's, and new threads inherit them. Row kernel-ties. */
#include "cache.h"

INTERPOSE int ioperm(unsigned long from, unsigned long count, int on) {
    kthread_tie_sigsafe(RETIRE_TIES);
    inherit_changed_tid(0);
    return REAL(ioperm)(from, count, on);
}

INTERPOSE int iopl(int level) {
    kthread_tie_sigsafe(RETIRE_TIES);
    inherit_changed_tid(0);
    return REAL(iopl)(level);
}
