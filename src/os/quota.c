// SPDX-License-Identifier: Apache-2.0
/* See quota.h. */
#include "os/quota.h"

#include <stdbool.h>
#include <string.h>

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
    uint32_t least = UINT32_MAX;
    for (char *end = folder + strlen(folder); end >= folder + top; end--) {
        if (*end != '\0' && *end != '/')
            continue;
        *end = '\0';
        uint32_t cpus = of_folder(folder);
        least = cpus < least ? cpus : least;
    }
    return least;
}

/* A line's list of controllers has "cpu" in it: "4:cpu,cpuacct:/path". */
static bool names_cpu(const char *list, size_t length) {
    for (size_t at = 0; at < length;) {
        size_t word = 0;
        while (at + word < length && list[at + word] != ',')
            word++;
        if (word == 3 && memcmp(list + at, "cpu", 3) == 0)
            return true;
        at += word + 1;
    }
    return false;
}

/* One line: "hierarchy:controllers:path". */
static uint32_t of_line(const char *line, size_t length, const char *root) {
    const char *list = memchr(line, ':', length);
    const char *path = list != NULL ? memchr(list + 1, ':', length - (size_t)(list + 1 - line)) : NULL;
    if (path == NULL)
        return UINT32_MAX;
    size_t names = (size_t)(path - list - 1), rest = length - (size_t)(path + 1 - line);
    if (names == 0)
        return least_upwards(root, path + 1, rest, of_version_2);
    if (!names_cpu(list + 1, names))
        return UINT32_MAX;
    char mount[PATH_LENGTH];
    mount[0] = '\0';
    if (!append(mount, sizeof mount, root, strlen(root)) || !append(mount, sizeof mount, "/cpu", 4))
        return UINT32_MAX;
    return least_upwards(mount, path + 1, rest, of_version_1);
}

uint32_t quota_cpus_from(const char *groups, const char *root) {
    uint32_t least = UINT32_MAX;
    while (*groups != '\0') {
        size_t length = strcspn(groups, "\n");
        uint32_t cpus = of_line(groups, length, root);
        least = cpus < least ? cpus : least;
        groups += length + (groups[length] == '\n');
    }
    return least;
}

uint32_t quota_cpus(void) {
    char groups[4096];
    return file_read("/proc/self/cgroup", groups, sizeof groups) > 0
               ? quota_cpus_from(groups, "/sys/fs/cgroup")
               : UINT32_MAX;
}
