// SPDX-License-Identifier: Apache-2.0
/* A program that lists its own tasks (/proc/self/task) wants to know its threads, to do something to each of them, or to
 * wait until they are gone. So before each reading of the list the idle ones end, and those that have ended and wait to
 * be joined leave. Row tasks.
 *
 * Seen: opendir, fdopendir, scandir, scandirat and rewinddir, and getdents at the beginning of the list. Not seen: the
 * same within libc's glob and nftw, by inline system calls, and paths that lead there by other names. What asks for the
 * folder's status is in task_stat.c. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache.h"
#include "os/syscall.h"

/* --- what is listed ----------------------------------------------------------------------------------- */

/* While nothing is kept there is nothing to give up. */
static bool may_keep(void) {
    return load_relaxed(&thrum_cache_counters.created) != 0 && kthread_keeping() && !skipped(ROW_TASKS);
}

/* On the file system that is mounted at /proc only: a link is read for these. */
static bool is_own_tasks_fd(int fd) {
    struct stat given, proc;
    char link[64], path[64];
    if (fstat(fd, &given) != 0 || !S_ISDIR(given.st_mode) || stat("/proc/self", &proc) != 0 ||
        given.st_dev != proc.st_dev)
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long length = sys(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (length <= 0)
        return false;
    path[length] = '\0';
    return tasks_is_folder(path);
}

static void give_up(void) {
    int saved = errno;
    if (may_keep() && !process_is_sharing())
        kthread_cull();
    errno = saved;
}

void tasks_listed_by(int fd) {
    int saved = errno;
    if (may_keep() && sys(SYS_lseek, fd, 0, SEEK_CUR) == 0 && is_own_tasks_fd(fd))
        give_up();
    errno = saved;
}

/* --- those that are open, for rewinddir ----------------------------------------------------------------- */

enum { LISTS = 8 }; /* more are not remembered */
static DIR *lists[LISTS];

static bool swap_list(DIR *from, DIR *to) {
    for (int i = 0; i < LISTS; i++) {
        DIR *seen = from;
        if (cas_relaxed(&lists[i], &seen, to))
            return true;
    }
    return false;
}

static bool is_list(const DIR *folder) {
    for (int i = 0; i < LISTS; i++)
        if (load_relaxed(&lists[i]) == folder)
            return true;
    return false;
}

static DIR *note(DIR *folder) {
    if (folder != NULL)
        swap_list(NULL, folder);
    return folder;
}

/* --- functions ---------------------------------------------------------------------------------------- */

INTERPOSE DIR *opendir(const char *path) {
    if (!may_keep() || !tasks_is_folder(path))
        return NEXT(opendir)(path);
    give_up();
    return note(NEXT(opendir)(path));
}

INTERPOSE DIR *fdopendir(int fd) {
    int saved = errno;
    bool own = may_keep() && is_own_tasks_fd(fd);
    errno = saved;
    if (!own)
        return NEXT(fdopendir)(fd);
    give_up();
    return note(NEXT(fdopendir)(fd));
}

INTERPOSE void rewinddir(DIR *folder) {
    if (is_list(folder))
        give_up();
    NEXT(rewinddir)(folder);
}

INTERPOSE int closedir(DIR *folder) {
    if (is_list(folder)) /* NULL, too: nothing happens */
        swap_list(folder, NULL);
    return NEXT(closedir)(folder);
}

INTERPOSE int scandir(const char *restrict path, struct dirent ***restrict names,
                      int (*filter)(const struct dirent *),
                      int (*compare)(const struct dirent **, const struct dirent **)) {
    if (tasks_is_folder(path))
        give_up();
    return NEXT(scandir)(path, names, filter, compare);
}

INTERPOSE int scandir64(const char *restrict path, struct dirent64 ***restrict names,
                        int (*filter)(const struct dirent64 *),
                        int (*compare)(const struct dirent64 **, const struct dirent64 **)) {
    if (tasks_is_folder(path))
        give_up();
    return NEXT(scandir64)(path, names, filter, compare);
}

INTERPOSE int scandirat(int folder, const char *restrict path, struct dirent ***restrict names,
                        int (*filter)(const struct dirent *),
                        int (*compare)(const struct dirent **, const struct dirent **)) {
    if (tasks_is_folder(path))
        give_up();
    return NEXT(scandirat)(folder, path, names, filter, compare);
}

INTERPOSE int scandirat64(int folder, const char *restrict path, struct dirent64 ***restrict names,
                          int (*filter)(const struct dirent64 *),
                          int (*compare)(const struct dirent64 **, const struct dirent64 **)) {
    if (tasks_is_folder(path))
        give_up();
    return NEXT(scandirat64)(folder, path, names, filter, compare);
}

INTERPOSE ssize_t getdents64(int fd, void *entries, size_t size) {
    tasks_listed_by(fd);
    return NEXT(getdents64)(fd, entries, size);
}
