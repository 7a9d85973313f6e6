// SPDX-License-Identifier: Apache-2.0
/* See pressure.h. The file is opened once, at the start, and stays open: with a high number, so that the program's
 * own come out as without it, and not inherited by exec. A program that closes all open files closes it too; then
 * nothing is known any more. */
#include "os/pressure.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include "os/file.h"

enum { SHARE_PERCENT = 10, FD_FROM = 900, GROUP_MAX = 512 };
static const char trigger[] = "some 200000 2000000"; /* of two seconds, a tenth */
static const char system_file[] = "/proc/pressure/memory";

static char file[GROUP_MAX + 64];
static int fd = -1;
static struct stat identity; /* of what fd was */
static bool has_trigger, without_trigger, begun;
static uint64_t last_total_us, last_ns;

bool pressure_group_file(const char *groups, char *path, size_t size) {
    static const char before[] = "/sys/fs/cgroup", behind[] = "/memory.pressure";
    const char *line = strncmp(groups, "0::/", 4) == 0 ? groups : strstr(groups, "\n0::/");
    if (line == NULL)
        return false;
    line += *line == '\n' ? 4 : 3;
    size_t length = strcspn(line, "\n");
    if (length <= 1 || length + sizeof before - 1 + sizeof behind > size)
        return false;
    memcpy(path, before, sizeof before - 1);
    memcpy(path + sizeof before - 1, line, length);
    memcpy(path + sizeof before - 1 + length, behind, sizeof behind);
    return true;
}

/* The control group's own file where groups are of version 2 and it can be read. */
static bool find_group_file(void) {
    char groups[2 * GROUP_MAX], text[8];
    return file_read("/proc/self/cgroup", groups, sizeof groups) > 0 &&
           pressure_group_file(groups, file, sizeof file) && file_read(file, text, sizeof text) > 0;
}

void pressure_use_file(const char *path) {
    strncpy(file, path, sizeof file - 1);
    without_trigger = true;
}

void pressure_open(void) {
    if (file[0] == '\0' && !find_group_file())
        memcpy(file, system_file, sizeof system_file);
    long at = without_trigger ? -1 : sys(SYS_openat, AT_FDCWD, file, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    has_trigger = at >= 0 && sys(SYS_write, at, trigger, sizeof trigger) > 0;
    if (at < 0)
        at = sys(SYS_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC);
    if (at < 0)
        return;
    fd = (int)sys(SYS_fcntl, at, F_DUPFD_CLOEXEC, FD_FROM);
    sys(SYS_close, at);
    if (fd >= 0 && sys(SYS_fstat, fd, &identity) != 0)
        fd = -1;
}

static bool stands(void) {
    struct stat now;
    return fd >= 0 && sys(SYS_fstat, fd, &now) == 0 && now.st_dev == identity.st_dev &&
           now.st_ino == identity.st_ino;
}

static bool trigger_fired(void) {
    struct pollfd poll = {fd, POLLPRI, 0};
    struct timespec now = {0, 0};
    return sys(SYS_ppoll, &poll, 1, &now, NULL, 0) > 0 && (poll.revents & POLLPRI);
}

uint64_t pressure_total_us(const char *text) {
    const char *at = strncmp(text, "some ", 5) == 0 ? strstr(text, "total=") : NULL;
    uint64_t total = 0;
    if (at == NULL)
        return 0;
    for (at += 6; *at >= '0' && *at <= '9'; at++)
        total = total * 10 + (uint64_t)(*at - '0');
    return total;
}

static uint64_t read_total_us(void) {
    char text[256];
    long length = sys(SYS_pread64, fd, text, sizeof text - 1, 0);
    if (length <= 0)
        return 0;
    text[length] = '\0';
    return pressure_total_us(text);
}

bool pressure_rose(uint64_t now_ns) {
    if (!stands())
        return false;
    if (has_trigger)
        return trigger_fired();
    uint64_t total = read_total_us();
    if (total == 0)
        return false;
    bool first = !begun;
    uint64_t waited_us = total - last_total_us, passed_us = (now_ns - last_ns) / 1000;
    begun = true;
    last_total_us = total;
    last_ns = now_ns;
    return !first && passed_us != 0 && waited_us * 100 >= passed_us * SHARE_PERCENT;
}

/* The trigger is one for both processes, and tells only the first that asks: the child reads totals. */
void pressure_fork_child(void) {
    has_trigger = begun = false;
}
