// SPDX-License-Identifier: Apache-2.0
/* Programs that ask whether a task of theirs is gone, or how many there are, by the folder's status: a sandbox joins its
 * threads and waits until /proc/self/task/TID is not there any more, or until the folder has as many links as one thread
 * makes (Chromium). Before such a question idle threads end if they are what it is about. Row task-stat.
 *
 * The path is looked at only while the cache has a thread; most have no "task" in them. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "cache.h"

/* Behind "self" or the process's own number: "/task". What follows that; NULL if there is none. */
static const char *behind_task(const char *path) {
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

static void asks_about_tasks(const char *path) {
    const char *rest = path != NULL ? behind_task(path) : NULL;
    if (rest == NULL || process_is_sharing())
        return;
    bool about_all = *rest == '\0' || (*rest == '/' && rest[strspn(rest, "/")] == '\0');
    if (about_all || (*rest == '/' && is_ended(rest + strspn(rest, "/"))))
        kthread_cull();
}

static inline void look_at(const char *path) {
    if (load_relaxed(&thrum_cache_counters.created) != 0 && kthread_keeping() && !skipped(ROW_TASK_STAT))
        asks_about_tasks(path);
}

INTERPOSE int stat(const char *restrict path, struct stat *restrict status) {
    look_at(path);
    return REAL(stat)(path, status);
}

INTERPOSE int stat64(const char *restrict path, struct stat64 *restrict status) {
    look_at(path);
    return REAL(stat64)(path, status);
}

INTERPOSE int lstat(const char *restrict path, struct stat *restrict status) {
    look_at(path);
    return REAL(lstat)(path, status);
}

INTERPOSE int lstat64(const char *restrict path, struct stat64 *restrict status) {
    look_at(path);
    return REAL(lstat64)(path, status);
}

INTERPOSE int fstatat(int folder, const char *restrict path, struct stat *restrict status, int flags) {
    look_at(path);
    return REAL(fstatat)(folder, path, status, flags);
}

INTERPOSE int fstatat64(int folder, const char *restrict path, struct stat64 *restrict status, int flags) {
    look_at(path);
    return REAL(fstatat64)(folder, path, status, flags);
}

INTERPOSE int statx(int folder, const char *restrict path, int flags, unsigned mask,
                    struct statx *restrict status) {
    look_at(path);
    return REAL(statx)(folder, path, flags, mask, status);
}

INTERPOSE int access(const char *path, int mode) {
    look_at(path);
    return REAL(access)(path, mode);
}

INTERPOSE int faccessat(int folder, const char *path, int mode, int flags) {
    look_at(path);
    return REAL(faccessat)(folder, path, mode, flags);
}
