// SPDX-License-Identifier: Apache-2.0
/* Limits on address space. Idle threads' stacks count against RLIMIT_AS and RLIMIT_DATA, and libc keeps up to
 * 40 MiB of stacks besides; a program under such a limit must find as much room as without the cache, so nothing
 * is kept. Row eagain. */
#include <sys/resource.h>

#include "cache.h"
#include "os/syscall.h"

static bool limited(int resource) {
    struct rlimit limit;
    return sys(SYS_prlimit64, 0, resource, NULL, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

void limits_read(void) {
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

static bool is_about_memory(int resource) {
    return resource == RLIMIT_AS || resource == RLIMIT_DATA;
}

INTERPOSE int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit) {
    int answer = REAL(setrlimit)(resource, limit);
    if (answer == 0 && is_about_memory((int)resource))
        limits_changed();
    return answer;
}

INTERPOSE int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit) {
    int answer = REAL(setrlimit64)(resource, limit);
    if (answer == 0 && is_about_memory((int)resource))
        limits_changed();
    return answer;
}

INTERPOSE int prlimit(pid_t pid, __rlimit_resource_t resource, const struct rlimit *limit,
                      struct rlimit *old) {
    int answer = REAL(prlimit)(reach_look(pid), resource, limit, old);
    if (answer == 0 && limit != NULL && is_about_memory((int)resource))
        limits_changed();
    return answer;
}

INTERPOSE int prlimit64(pid_t pid, __rlimit_resource_t resource, const struct rlimit64 *limit,
                        struct rlimit64 *old) {
    int answer = REAL(prlimit64)(reach_look(pid), resource, limit, old);
    if (answer == 0 && limit != NULL && is_about_memory((int)resource))
        limits_changed();
    return answer;
}
