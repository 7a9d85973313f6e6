// SPDX-License-Identifier: Apache-2.0
/* See quota.h. */
#include "os/quota.h"

#include <linux/capability.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>

#include "os/file.h"

enum { PATH_LENGTH = 1024 };

/* Up to `size` characters; false: it does not fit. */
static bool append(char *path, size_t size, const char *text, size_t length) {
    size_t at = strlen(path);
    if (at + length >= size)
        return false;
    memcpy(path + at, text, length);
    path[at + length] = '\0';
    return true;
}

/* A decimal number, and what comes after it; false: there is none. */
static bool number(const char **at, uint64_t *value) {
    const char *from = *at;
    for (*value = 0; **at >= '0' && **at <= '9'; (*at)++)
        *value = *value * 10 + (uint64_t)(**at - '0');
    return *at != from;
}

static uint32_t ratio(uint64_t quota, uint64_t period) {
    uint64_t cpus = period != 0 ? (quota + period - 1) / period : 0;
    return cpus == 0 || cpus > UINT32_MAX ? UINT32_MAX : (uint32_t)cpus;
}

static bool read_beside(const char *folder, const char *name, char *text, size_t size) {
    char path[PATH_LENGTH];
    path[0] = '\0';
    return append(path, sizeof path, folder, strlen(folder)) &&
           append(path, sizeof path, name, strlen(name)) && file_read(path, text, size) > 0;
}

/* "max 100000", or "150000 100000". */
static uint32_t of_version_2(const char *folder) {
    char text[64];
    const char *at = text;
    uint64_t quota, period;
    if (!read_beside(folder, "/cpu.max", text, sizeof text) || !number(&at, &quota) || *at++ != ' ' ||
        !number(&at, &period))
        return UINT32_MAX;
    return ratio(quota, period);
}

/* "-1" is none. */
static uint32_t of_version_1(const char *folder) {
    char text[64];
    const char *at = text;
    uint64_t quota, period;
    if (!read_beside(folder, "/cpu.cfs_quota_us", text, sizeof text) || !number(&at, &quota))
        return UINT32_MAX;
    at = text;
    if (!read_beside(folder, "/cpu.cfs_period_us", text, sizeof text) || !number(&at, &period))
        return UINT32_MAX;
    return ratio(quota, period);
}

/* --- kernel threads ----------------------------------------------------------------------------------- */

/* A quarter of each limit is for others: the program's own threads and children, and other programs. */
static uint32_t room(uint64_t limit, uint64_t used) {
    uint64_t ours = limit - limit / 4;
    uint64_t left = ours > used ? ours - used : 0;
    return left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* "max" is none. Both versions have the same two files. */
static uint32_t tasks_of_folder(const char *folder) {
    char text[64];
    const char *at = text;
    uint64_t limit, used;
    if (!read_beside(folder, "/pids.max", text, sizeof text) || !number(&at, &limit))
        return UINT32_MAX;
    at = text;
    if (!read_beside(folder, "/pids.current", text, sizeof text) || !number(&at, &used))
        return UINT32_MAX;
    return room(limit, used);
}

static bool read_number(const char *path, uint64_t *value) {
    char text[64];
    const char *at = text;
    return file_read(path, text, sizeof text) > 0 && number(&at, value);
}

/* In "0.20 0.18 0.12 1/803 11206" the number behind the slash. */
static uint32_t tasks_of_system(void) {
    char text[128];
    const char *slash = file_read("/proc/loadavg", text, sizeof text) > 0 ? strchr(text, '/') : NULL;
    uint64_t used, threads = UINT64_MAX, numbers = UINT64_MAX;
    if (slash == NULL || (slash++, !number(&slash, &used)))
        return UINT32_MAX;
    (void)read_number("/proc/sys/kernel/threads-max", &threads);
    (void)read_number("/proc/sys/kernel/pid_max", &numbers);
    return room(threads < numbers ? threads : numbers, used);
}

/* The 18th field behind the name, which is in parentheses and may contain some. */
static uint64_t tasks_of_process(void) {
    enum { FIELD = 18 };
    char text[1024];
    uint64_t count = 0;
    const char *at = file_read("/proc/self/stat", text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
    for (int field = 0; at != NULL && field < FIELD; field++)
        if ((at = strchr(at, ' ')) != NULL)
            at++;
    return at != NULL && number(&at, &count) ? count : 0;
}

/* The kernel does not hold the superuser to it, nor one that may exceed limits. */
static bool is_exempt(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    const uint32_t either = 1U << CAP_SYS_RESOURCE | 1U << CAP_SYS_ADMIN;
    return sys(SYS_getuid) == 0 || (sys(SYS_capget, &header, data) == 0 && (data[0].effective & either) != 0);
}

/* The kernel counts all tasks of the user; a process can tell its own only. If others take most of the limit creation fails
 * before. */
static uint32_t tasks_of_user(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NPROC, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || is_exempt())
        return UINT32_MAX;
    return room(limit.rlim_cur, tasks_of_process());
}

/* --- groups ------------------------------------------------------------------------------------------- */

/* From the group `path` (which begins with /) up to the root; what lies above a container's root is out of sight. */
static uint32_t least_upwards(const char *root, const char *path, size_t length,
                              uint32_t (*of_folder)(const char *folder)) {
    char folder[PATH_LENGTH];
    folder[0] = '\0';
    if (!append(folder, sizeof folder, root, strlen(root)))
        return UINT32_MAX;
    size_t top = strlen(folder);
    if (!append(folder, sizeof folder, path, length))
        return UINT32_MAX;
    uint32_t smallest = UINT32_MAX;
    for (char *end = folder + strlen(folder); end >= folder + top; end--) {
        if (*end != '\0' && *end != '/')
            continue;
        *end = '\0';
        smallest = least(smallest, of_folder(folder));
    }
    return smallest;
}

/* What is limited, and how it is read. */
struct controller {
    const char *name, *mount; /* of version 1 */
    uint32_t (*version_1)(const char *folder), (*version_2)(const char *folder);
};

/* A line's list of controllers has `name` in it: "4:cpu,cpuacct:/path". */
static bool names(const char *list, size_t length, const char *name) {
    for (size_t at = 0; at < length;) {
        size_t word = 0;
        while (at + word < length && list[at + word] != ',')
            word++;
        if (word == strlen(name) && memcmp(list + at, name, word) == 0)
            return true;
        at += word + 1;
    }
    return false;
}

/* One line: "hierarchy:controllers:path". */
static uint32_t of_line(const char *line, size_t length, const char *root,
                        const struct controller *controller) {
    const char *list = memchr(line, ':', length);
    const char *path = list != NULL ? memchr(list + 1, ':', length - (size_t)(list + 1 - line)) : NULL;
    if (path == NULL)
        return UINT32_MAX;
    size_t listed = (size_t)(path - list - 1), rest = length - (size_t)(path + 1 - line);
    if (listed == 0)
        return least_upwards(root, path + 1, rest, controller->version_2);
    if (!names(list + 1, listed, controller->name))
        return UINT32_MAX;
    char mount[PATH_LENGTH];
    mount[0] = '\0';
    if (!append(mount, sizeof mount, root, strlen(root)) ||
        !append(mount, sizeof mount, controller->mount, strlen(controller->mount)))
        return UINT32_MAX;
    return least_upwards(mount, path + 1, rest, controller->version_1);
}

static uint32_t of_groups(const char *groups, const char *root, const struct controller *controller) {
    uint32_t smallest = UINT32_MAX;
    while (*groups != '\0') {
        size_t length = strcspn(groups, "\n");
        smallest = least(smallest, of_line(groups, length, root, controller));
        groups += length + (groups[length] == '\n');
    }
    return smallest;
}

static uint32_t of_own_groups(uint32_t (*from)(const char *groups, const char *root)) {
    char groups[4096];
    return file_read("/proc/self/cgroup", groups, sizeof groups) > 0 ? from(groups, "/sys/fs/cgroup")
                                                                     : UINT32_MAX;
}

/* --- public ------------------------------------------------------------------------------------------- */

uint32_t quota_cpus_from(const char *groups, const char *root) {
    return of_groups(groups, root, &(struct controller){"cpu", "/cpu", of_version_1, of_version_2});
}

uint32_t quota_cpus(void) {
    return of_own_groups(quota_cpus_from);
}

uint32_t quota_threads_from(const char *groups, const char *root) {
    return of_groups(groups, root, &(struct controller){"pids", "/pids", tasks_of_folder, tasks_of_folder});
}

uint32_t quota_threads(void) {
    return least(of_own_groups(quota_threads_from), least(tasks_of_system(), tasks_of_user()));
}
