// SPDX-License-Identifier: Apache-2.0
/* See unchanged.h. All by raw system call: libc's wrappers are interposed, or keep notes of their own. Nothing is asked
 * where threads are not kept, as in a sandbox; and under a filter from the start only what sandbox.c has tried. */
#include "unchanged.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>

#include "cache.h"
#include "os/syscall.h"

_Static_assert(UNCHANGED_WORDS >= 20, "the largest answer, struct sched_attr or the memory policy, has room");

/* struct sched_attr of sched_getattr(2): what comes first is what is looked at here. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
};

enum { PRIO_OF_PROCESS = 0, IOPRIO_OF_PROCESS = 1 };

/* The nice value stays with the thread while it has a policy that does not use it, and then is not among the attributes. */
static bool ask_scheduling(long tid, uint64_t *words) {
    const size_t size = (UNCHANGED_WORDS - 1) * sizeof *words;
    words[UNCHANGED_WORDS - 1] = (uint64_t)sys(SYS_getpriority, PRIO_OF_PROCESS, tid);
    return sys(SYS_sched_getattr, tid, words, size, 0) == 0;
}

static bool ask_ids(uint64_t *words) {
    uint32_t *ids = (uint32_t *)words;
    ids[6] = (uint32_t)sys(SYS_setfsuid, -1);
    ids[7] = (uint32_t)sys(SYS_setfsgid, -1);
    return sys(SYS_getresuid, &ids[0], &ids[1], &ids[2]) == 0 &&
           sys(SYS_getresgid, &ids[3], &ids[4], &ids[5]) == 0;
}

static bool ask_rights(uint64_t *words) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    return sys(SYS_capget, &header, words) == 0;
}

/* For up to 1024 nodes; with more the kernel refuses, and it counts as changed. */
static bool ask_memory_policy(uint64_t *words) {
    enum { NODES = 1024 };
    int mode = 0;
    bool told = sys(SYS_get_mempolicy, &mode, words, NODES, 0, 0) == 0;
    words[NODES / 64] = (uint64_t)mode;
    return told;
}

static bool ask(const struct unchanged *about, uint64_t *words) {
    memset(words, 0, sizeof about->words);
    switch (about->what) {
    case UNCHANGED_SCHEDULING: return ask_scheduling(about->target, words);
    case UNCHANGED_IO_PRIORITY: {
        long answer = sys(SYS_ioprio_get, IOPRIO_OF_PROCESS, about->target);
        words[0] = (uint64_t)answer;
        return answer >= 0;
    }
    case UNCHANGED_PRCTL: {
        long answer = sys(SYS_prctl, about->target, 0, 0, 0, 0);
        words[0] = (uint64_t)answer;
        return answer >= 0;
    }
    case UNCHANGED_RIGHTS: return ask_rights(words);
    case UNCHANGED_IDS: return ask_ids(words);
    case UNCHANGED_MEMORY_POLICY: return ask_memory_policy(words);
    default: return false;
    }
}

static struct unchanged look(enum unchanged_what what, long target) {
    struct unchanged now = {.what = what, .target = target};
    if (!kthread_keeping() || (what != UNCHANGED_SCHEDULING && !sandbox_permits_more()) ||
        !ask(&now, now.words))
        now.what = UNCHANGED_UNKNOWN;
    return now;
}

struct unchanged unchanged_scheduling(pid_t tid) {
    return look(UNCHANGED_SCHEDULING, tid);
}

struct unchanged unchanged_rights(void) {
    return look(UNCHANGED_RIGHTS, 0);
}

struct unchanged unchanged_prctl(int option) {
    switch (option) {
    case PR_SET_TIMERSLACK: return look(UNCHANGED_PRCTL, PR_GET_TIMERSLACK);
    case PR_SET_KEEPCAPS: return look(UNCHANGED_PRCTL, PR_GET_KEEPCAPS);
    case PR_SET_SECUREBITS: return look(UNCHANGED_PRCTL, PR_GET_SECUREBITS);
    case PR_SET_NO_NEW_PRIVS: return look(UNCHANGED_PRCTL, PR_GET_NO_NEW_PRIVS);
    case PR_SET_TIMING: return look(UNCHANGED_PRCTL, PR_GET_TIMING);
    default: return (struct unchanged){.what = UNCHANGED_UNKNOWN};
    }
}

struct unchanged unchanged_by_number(long number, const long *a) {
    switch (number) {
    case SYS_sched_setscheduler:
    case SYS_sched_setparam:
    case SYS_sched_setattr: return look(UNCHANGED_SCHEDULING, (pid_t)a[0]);
    case SYS_setpriority:
        if (a[0] == PRIO_OF_PROCESS)
            return look(UNCHANGED_SCHEDULING, (pid_t)a[1]);
        break;
    case SYS_ioprio_set:
        if (a[0] == IOPRIO_OF_PROCESS)
            return look(UNCHANGED_IO_PRIORITY, (pid_t)a[1]);
        break;
    case SYS_set_mempolicy: return look(UNCHANGED_MEMORY_POLICY, 0);
    case SYS_setuid:
    case SYS_setgid:
    case SYS_setreuid:
    case SYS_setregid:
    case SYS_setresuid:
    case SYS_setresgid:
    case SYS_setfsuid:
    case SYS_setfsgid: return look(UNCHANGED_IDS, 0);
    default: break;
    }
    return (struct unchanged){.what = UNCHANGED_UNKNOWN};
}

bool unchanged_is(const struct unchanged *before) {
    struct unchanged now = {.what = before->what, .target = before->target};
    return before->what != UNCHANGED_UNKNOWN && kthread_keeping() && ask(&now, now.words) &&
           memcmp(now.words, before->words, sizeof now.words) == 0;
}

bool unchanged_policy_is_own(int policy, const struct sched_param *param) {
    union {
        uint64_t words[UNCHANGED_WORDS];
        struct attributes attributes;
    } own = {{0}};
    return sys(SYS_sched_getattr, 0, own.words, sizeof own.words, 0) == 0 && own.attributes.flags == 0 &&
           own.attributes.policy == (uint32_t)policy &&
           own.attributes.priority == (uint32_t)param->sched_priority;
}
