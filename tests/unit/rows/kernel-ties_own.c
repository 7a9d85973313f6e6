// SPDX-License-Identifier: Apache-2.0
//
// Row kernel-ties: state of one kernel thread that its children do not inherit and that goes with it: the signal that it
// wants at its parent's death, syscall user dispatch.
#include <sys/prctl.h>

#include "lineage.h"

static int as_error(long result) {
    return result == -1 ? errno : 0;
}

static long look_parent_death(void) {
    int sig = -1;
    prctl(PR_GET_PDEATHSIG, &sig, 0, 0, 0);
    return sig;
}
static int change_parent_death(void) {
    return as_error(prctl(PR_SET_PDEATHSIG, SIGUSR2, 0, 0, 0));
}
LINEAGE(parent_death, change_parent_death, look_parent_death, NOT_INHERITED)

// Syscall user dispatch: a thread that has it dies of SIGSYS while the selector says so.
static volatile char selector; // SYSCALL_DISPATCH_FILTER_ALLOW

static void *dispatch(void *arg) {
    if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector) == -1)
        CANNOT("syscall user dispatch: %s", strerror(errno));
    return arg;
}
static void *call_while_blocked(void *arg) {
    selector = 1; // SYSCALL_DISPATCH_FILTER_BLOCK
    syscall(SYS_getppid);
    selector = 0;
    return arg;
}
static void dispatch_ended(void) {
    run_thread(dispatch, NULL);
    for (int i = 0; i < LINEAGE_IDLE; i++)
        run_thread(call_while_blocked, NULL);
}

static const struct check_case cases[] = {
    LINEAGE_CASES_NOT_INHERITED(parent_death),
    {"dispatch_ended", dispatch_ended, FAILS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
