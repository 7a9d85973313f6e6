// SPDX-License-Identifier: Apache-2.0
//
// Row stale, of core scheduling, which few kernels have: a filter stands for the kernel. It knows each thread but that of the
// one id that no thread can have, which the cache puts in the place of the id of a thread that has ended.
#include "filter.h"

enum { NO_SUCH_TID = 0x0fffffff }; // cache/stale.c's

static int core(unsigned command, pid_t tid, unsigned scope) {
    unsigned long cookie = 0;
    return prctl(PR_SCHED_CORE, command, tid, scope, command == PR_SCHED_CORE_GET ? &cookie : NULL) == 0
               ? 0
               : errno;
}

static int restarted_with_core_scheduling(void) {
    static const char inner_name[] = "THRUM_ROW_INNER";
    if (getenv(inner_name))
        return 1;
    struct filter filter = {.length = 0};
    filter_add(&filter, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
    filter_add(&filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 6);
    filter_add(&filter, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]), 0, 0);
    filter_add(&filter, BPF_JMP | BPF_JEQ | BPF_K, PR_SCHED_CORE, 0, 4);
    filter_add(&filter, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2]), 0, 0);
    filter_add(&filter, BPF_JMP | BPF_JEQ | BPF_K, NO_SUCH_TID, 0, 1);
    filter_add(&filter, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ESRCH, 0, 0);
    filter_add(&filter, BPF_RET | BPF_K, SECCOMP_RET_ERRNO, 0, 0);
    filter_add(&filter, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    return filter_restart(&filter, inner_name);
}

static void of_ended(void) {
    if (!restarted_with_core_scheduling())
        return;
    pid_t tid = run_thread(do_nothing, NULL);
    for (unsigned command = PR_SCHED_CORE_GET; command < PR_SCHED_CORE_MAX; command++)
        if (under_thrum())
            CHECK_EQ(core(command, tid, PR_SCHED_CORE_SCOPE_THREAD), ESRCH);
}

// Nothing changes by a question; what has a cookie of its own is not reused.
static void of_oneself(void) {
    if (!restarted_with_core_scheduling())
        return;
    CHECK_EQ(core(PR_SCHED_CORE_GET, 0, PR_SCHED_CORE_SCOPE_THREAD), 0);
    CHECK_EQ(core(PR_SCHED_CORE_GET, kernel_tid(), PR_SCHED_CORE_SCOPE_THREAD), 0);
    pid_t first = run_thread(do_nothing, NULL);
    if (under_thrum())
        expect_reused(first, run_thread(do_nothing, NULL));
    CHECK_EQ(core(PR_SCHED_CORE_CREATE, 0, PR_SCHED_CORE_SCOPE_THREAD), 0);
    CHECK(run_thread(do_nothing, NULL) != first, "a thread without the creator's cookie was reused");
}

static const struct check_case cases[] = {
    {"of_ended", of_ended, FAILS_WHEN_SKIPPED}, {"of_oneself", of_oneself, HOLDS_WHEN_SKIPPED}, // row lineage
};
CHECK_MAIN(cases)
