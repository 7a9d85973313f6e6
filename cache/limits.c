// SPDX-License-Identifier: Apache-2.0
/* Limits on address space and on tasks. Idle threads' stacks count against RLIMIT_AS and RLIMIT_DATA, and libc keeps up
 * to 40 MiB of stacks besides; a program under such a limit must find as much room as without the cache, so nothing
 * is kept. RLIMIT_NPROC is one limit for all processes of a user: what this program keeps the others cannot have, and
 * the cache does not see them fail. So no more than a share of it is kept. Row eagain. */
#include <sys/resource.h>

#include "cache.h"
#include "os/syscall.h"

static bool limited(int resource) {
    struct rlimit limit;
    return sys(SYS_prlimit64, 0, resource, NULL, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

enum { TASKS_SHARE = 16, TASKS_LEAST = 16 };

static uint64_t most_tasks(void) {
    struct rlimit limit;
    if (skipped(ROW_EAGAIN) || sys(SYS_prlimit64, 0, RLIMIT_NPROC, NULL, &limit) != 0 ||
        limit.rlim_cur == RLIM_INFINITY)
        return 0;
    return limit.rlim_cur / TASKS_SHARE > TASKS_LEAST ? limit.rlim_cur / TASKS_SHARE : TASKS_LEAST;
}

void limits_read(void) {
    store_relaxed(&kthread_config.most_tasks, most_tasks());
    bool some = !skipped(ROW_EAGAIN) && (limited(RLIMIT_AS) || limited(RLIMIT_DATA));
    store_relaxed(&kthread_config.memory_limited, some);
}

static void limits_changed(void) {
    if (!kthread_keeping() || sys(SYS_getpid) != cache_pid())
        return; /* a vfork's child: the limits are its own, this memory is its parent's */
    limits_read();
    if (load_relaxed(&kthread_config.memory_limited))
        kthread_cull();
}

static bool is_about_us(int resource) {
    return resource == RLIMIT_AS || resource == RLIMIT_DATA || resource == RLIMIT_NPROC;
}

INTERPOSE int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit) {
    int answer = REAL(setrlimit)(resource, limit);
    if (answer == 0 && is_about_us((int)resource))
        limits_changed();
    return answer;
}

INTERPOSE int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit) {
    int answer = REAL(setrlimit64)(resource, limit);
    if (answer == 0 && is_about_us((int)resource))
        limits_changed();
    return answer;
}

INTERPOSE int prlimit(pid_t pid, __rlimit_resource_t resource, const struct rlimit *limit,
                      struct rlimit *old) {
    int answer = REAL(prlimit)(reach_look(pid), resource, limit, old);
    if (answer == 0 && limit != NULL && is_about_us((int)resource))
        limits_changed();
    return answer;
}

INTERPOSE int prlimit64(pid_t pid, __rlimit_resource_t resource, const struct rlimit64 *limit,
                        struct rlimit64 *old) {
    int answer = REAL(prlimit64)(reach_look(pid), resource, limit, old);
    if (answer == 0 && limit != NULL && is_about_us((int)resource))
        limits_changed();
    return answer;
}
