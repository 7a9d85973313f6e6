// SPDX-License-Identifier: Apache-2.0
//
// Row lineage: the rest of what a kernel thread carries. Execution domain, memory policy, machine-check policy,
// speculation control, restartable sequences.
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/rseq.h>

#include "lineage.h"

static int as_error(long result) {
    return result == -1 ? errno : 0;
}

static long look_personality(void) {
    return personality(0xffffffff);
}
static int change_personality(void) {
    return as_error(personality((unsigned long)look_personality() ^ ADDR_NO_RANDOMIZE));
}
static int change_personality_by_syscall(void) {
    return as_error(syscall(SYS_personality, (unsigned long)look_personality() ^ ADDR_COMPAT_LAYOUT));
}
LINEAGE(personality, change_personality, look_personality, INHERITED)
LINEAGE(syscall_personality, change_personality_by_syscall, look_personality, INHERITED)

static long look_mempolicy(void) {
    int mode = -1;
    return syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) == -1 ? -1 : mode;
}
static int change_mempolicy(void) {
    unsigned long node_0 = 1;
    return as_error(syscall(SYS_set_mempolicy, MPOL_PREFERRED, &node_0, 8 * sizeof node_0));
}
LINEAGE(mempolicy, change_mempolicy, look_mempolicy, INHERITED)

static long look_mce(void) {
    return prctl(PR_MCE_KILL_GET, 0, 0, 0, 0);
}
static int change_mce(void) {
    return as_error(prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0));
}
LINEAGE(mce_kill, change_mce, look_mce, INHERITED)

static long look_speculation(void) {
    return prctl(PR_GET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, 0, 0, 0);
}
static int change_speculation(void) {
    return as_error(prctl(PR_SET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, PR_SPEC_DISABLE, 0, 0));
}
LINEAGE(speculation, change_speculation, look_speculation, INHERITED)

// Registered by libc for every thread; here one takes it away. libc does not register the children of such a thread.
static volatile struct rseq *area(void) {
    return (volatile struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
}
static long look_rseq(void) {
    return (int32_t)area()->cpu_id >= 0;
}
static int change_rseq(void) {
    if (__rseq_size == 0)
        return ENOSYS;
    // The length that libc registered is at least the original structure's.
    unsigned size = __rseq_size < 32 ? 32 : __rseq_size;
    return as_error(syscall(SYS_rseq, area(), size, RSEQ_FLAG_UNREGISTER, RSEQ_SIG));
}
LINEAGE(rseq, change_rseq, look_rseq, INHERITED)

static const struct check_case cases[] = {
    LINEAGE_CASES(personality),
    LINEAGE_CASES(syscall_personality),
    LINEAGE_CASES(mempolicy),
    LINEAGE_CASES(mce_kill),
    LINEAGE_CASES(speculation),
    {"rseq_ended", rseq_ended, HOLDS_WHEN_SKIPPED}, // that the thread retires is row kernel-ties, too
    {"rseq_passed_on", rseq_passed_on, FAILS_WHEN_SKIPPED},
    {"rseq_of_main", rseq_of_main, FAILS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
