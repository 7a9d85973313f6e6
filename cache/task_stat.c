// SPDX-License-Identifier: Apache-2.0
/* Programs that ask whether a task of theirs is gone, or how many there are, by the folder's status: a sandbox joins its
 * threads and waits until /proc/self/task/TID is not there any more, or until the folder has as many links as one thread
 * makes (Chromium). Idle threads end if they are what such a question is about. Row task-stat.
 *
 * The kernel is asked first, and once more when they are gone: what it has answered is a path that can be read, while it
 * answers EFAULT to others. The path is looked at only while the cache has a thread; most have no "task" in them. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "cache.h"

const char *tasks_behind(const char *path) {
    static const char own[] = "self/task";
    const char *found = strstr(path, own);
    if (found != NULL && (found == path || found[-1] == '/'))
        return found + sizeof own - 1;
    static const char proc[] = "/proc/", folder[] = "/task";
    if (strncmp(path, proc, sizeof proc - 1) != 0)
        return NULL;
    long pid = 0;
    for (path += sizeof proc - 1; *path >= '0' && *path <= '9' && pid <= INT32_MAX; path++)
        pid = pid * 10 + (*path - '0');
    return pid == cache_pid() && strncmp(path, folder, sizeof folder - 1) == 0 ? path + sizeof folder - 1
                                                                               : NULL;
}

bool tasks_is_folder(const char *path) {
    const char *rest = tasks_behind(path);
    return rest != NULL && rest[strspn(rest, "/")] == '\0' && (*rest == '/' || *rest == '\0');
}

/* Of a thread that has ended. */
static bool is_ended(const char *digits) {
    struct kthread *thread;
    struct gate_visit visit;
    long tid = 0;
    for (; *digits >= '0' && *digits <= '9' && tid <= INT32_MAX; digits++)
        tid = tid * 10 + (*digits - '0');
    if (tid == 0 || tid > INT32_MAX || (*digits != '\0' && *digits != '/'))
        return false;
    enum kthread_tid found = kthread_visit_tid((pid_t)tid, &visit, &thread);
    if (found == KTHREAD_TID_VISITED)
        gate_visit_end(&visit);
    return found == KTHREAD_TID_ENDED;
}

/* True: they are gone. */
static __attribute__((noinline)) bool idle_ones_go_for(const char *path) {
    const char *rest = path != NULL ? tasks_behind(path) : NULL; /* none: of a descriptor */
    if (rest == NULL || process_is_sharing() ||
        !(tasks_is_folder(path) || (*rest == '/' && is_ended(rest + strspn(rest, "/")))))
        return false;
    int saved = errno;
    kthread_cull();
    errno = saved;
    return true;
}

bool task_stat_again(long answer, const char *path) {
    return answer == 0 && load_relaxed(&thrum_cache_counters.created) != 0 && kthread_keeping() &&
           !skipped(ROW_TASK_STAT) && idle_ones_go_for(path);
}

#define ASK(path, call)                                                                                      \
    ({                                                                                                       \
        int answer_ = (call);                                                                                \
        task_stat_again(answer_, (path)) ? (call) : answer_;                                                 \
    })

INTERPOSE int stat(const char *restrict path, struct stat *restrict status) {
    return ASK(path, REAL(stat)(path, status));
}

INTERPOSE int stat64(const char *restrict path, struct stat64 *restrict status) {
    return ASK(path, REAL(stat64)(path, status));
}

INTERPOSE int lstat(const char *restrict path, struct stat *restrict status) {
    return ASK(path, REAL(lstat)(path, status));
}

INTERPOSE int lstat64(const char *restrict path, struct stat64 *restrict status) {
    return ASK(path, REAL(lstat64)(path, status));
}

INTERPOSE int fstatat(int folder, const char *restrict path, struct stat *restrict status, int flags) {
    return ASK(path, REAL(fstatat)(folder, path, status, flags));
}

INTERPOSE int fstatat64(int folder, const char *restrict path, struct stat64 *restrict status, int flags) {
    return ASK(path, REAL(fstatat64)(folder, path, status, flags));
}

INTERPOSE int statx(int folder, const char *restrict path, int flags, unsigned mask,
                    struct statx *restrict status) {
    return ASK(path, REAL(statx)(folder, path, flags, mask, status));
}

INTERPOSE int access(const char *path, int mode) {
    return ASK(path, REAL(access)(path, mode));
}

INTERPOSE int faccessat(int folder, const char *path, int mode, int flags) {
    return ASK(path, REAL(faccessat)(folder, path, mode, flags));
}

/* --- the same for programs that were linked with a libc before 2.33 ------------------------------------------ */

static bool is_version(int version) {
    if (version >= 0 && version <= ARCH_STAT_VERSION)
        return true;
    errno = EINVAL;
    return false;
}

INTERPOSE int __xstat(int version, const char *path, struct stat *status) {
    return is_version(version) ? stat(path, status) : -1;
}

INTERPOSE int __xstat64(int version, const char *path, struct stat64 *status) {
    return is_version(version) ? stat64(path, status) : -1;
}

INTERPOSE int __lxstat(int version, const char *path, struct stat *status) {
    return is_version(version) ? lstat(path, status) : -1;
}

INTERPOSE int __lxstat64(int version, const char *path, struct stat64 *status) {
    return is_version(version) ? lstat64(path, status) : -1;
}

INTERPOSE int __fxstatat(int version, int folder, const char *path, struct stat *status, int flags) {
    return is_version(version) ? fstatat(folder, path, status, flags) : -1;
}

INTERPOSE int __fxstatat64(int version, int folder, const char *path, struct stat64 *status, int flags) {
    return is_version(version) ? fstatat64(folder, path, status, flags) : -1;
}
