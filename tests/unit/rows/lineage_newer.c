// SPDX-License-Identifier: Apache-2.0
//
// Row lineage: functions that only newer versions of libc have. Looked for at run time.
#include <sched.h>
#include <sys/resource.h>

#include "lineage.h"

struct scheduling { // the kernel's struct sched_attr, in its first size
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

static long look(void) {
    return 100 * sched_getscheduler(0) + getpriority(PRIO_PROCESS, 0);
}
static int change(void) {
    typedef int (*function)(pid_t, struct scheduling *, unsigned);
    function set = (function)dlsym(RTLD_DEFAULT, "sched_setattr");
    struct scheduling batch = {.size = sizeof batch, .policy = SCHED_BATCH, .nice = 9};
    if (set == NULL)
        return ENOSYS;
    return set(0, &batch, 0) == -1 ? errno : 0;
}
LINEAGE(sched_setattr_function, change, look, INHERITED)

// One that cannot be stood in for is not there where libc does not have it: programs ask.
static void no_stand_in(void) {
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    PREMISE(libc != NULL, "%s", dlerror());
    CHECK((dlsym(libc, "pidfd_spawn") == NULL) == (dlsym(RTLD_DEFAULT, "pidfd_spawn") == NULL),
          "pidfd_spawn");
    CHECK((dlsym(libc, "pidfd_spawnp") == NULL) == (dlsym(RTLD_DEFAULT, "pidfd_spawnp") == NULL),
          "pidfd_spawnp");
}

static const struct check_case cases[] = {
    LINEAGE_CASES(sched_setattr_function),
    {"no_stand_in", no_stand_in, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
