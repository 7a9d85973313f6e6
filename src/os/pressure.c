// SPDX-License-Identifier: Apache-2.0
/* See pressure.h. Files are opened anew for each look, but for the trigger, which is a file that stays open: it
 * gets a high number, so that the program's own come out as without it, and is not inherited by exec. */
#include "os/pressure.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include "os/syscall.h"

enum { SHARE_PERCENT = 10, TRIGGER_FD_FROM = 900, GROUP_MAX = 512 };
static const char trigger[] = "some 200000 2000000"; /* of two seconds, a tenth */
static const char system_file[] = "/proc/pressure/memory";

static char file[GROUP_MAX + 64];
static int trigger_fd = -1;
static struct stat trigger_identity;
static bool begun, without_trigger;
static uint64_t last_total_us, last_ns;

static long read_file(const char *path, char *text, size_t size) {
    long fd = sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    long length = sys(SYS_read, fd, text, size - 1);
    sys(SYS_close, fd);
    text[length > 0 ? length : 0] = '\0';
    return length;
}

/* The control group's own file where groups are of version 2 (a line "0::/path") and it can be read. */
static bool find_group_file(void) {
    char groups[2 * GROUP_MAX], text[8];
    if (read_file("/proc/self/cgroup", groups, sizeof groups) <= 0)
        return false;
    char *line = strncmp(groups, "0::/", 4) == 0 ? groups : strstr(groups, "\n0::/");
    if (line == NULL)
        return false;
    line += *line == '\n' ? 4 : 3;
    size_t length = strcspn(line, "\n");
    if (length <= 1 || length >= GROUP_MAX)
        return false;
    static const char before[] = "/sys/fs/cgroup", behind[] = "/memory.pressure";
    char *at = file;
    memcpy(at, before, sizeof before - 1);
    at += sizeof before - 1;
    memcpy(at, line, length);
    memcpy(at + length, behind, sizeof behind);
    return read_file(file, text, sizeof text) > 0;
}

void pressure_use_file(const char *path) {
    strncpy(file, path, sizeof file - 1);
    begun = false;
    without_trigger = true;
}

static void set_trigger(void) {
    long fd = sys(SYS_openat, AT_FDCWD, file, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (sys(SYS_write, fd, trigger, sizeof trigger) > 0)
        trigger_fd = (int)sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, TRIGGER_FD_FROM);
    sys(SYS_close, fd);
    if (trigger_fd >= 0 && sys(SYS_fstat, trigger_fd, &trigger_identity) != 0)
        trigger_fd = -1;
}

/* A program that closes whatever is open takes the trigger with it, and may have put something else in its place. */
static bool trigger_stands(void) {
    struct stat now;
    return trigger_fd >= 0 && sys(SYS_fstat, trigger_fd, &now) == 0 &&
           now.st_dev == trigger_identity.st_dev && now.st_ino == trigger_identity.st_ino;
}

static bool trigger_fired(void) {
    struct pollfd poll = {trigger_fd, POLLPRI, 0};
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
    return read_file(file, text, sizeof text) > 0 ? pressure_total_us(text) : 0;
}

static void begin(uint64_t now_ns) {
    begun = true;
    if (file[0] == '\0' && !find_group_file())
        memcpy(file, system_file, sizeof system_file);
    if (!without_trigger)
        set_trigger();
    last_total_us = read_total_us();
    last_ns = now_ns;
}

bool pressure_rose(uint64_t now_ns) {
    if (!begun) {
        begin(now_ns);
        return false;
    }
    if (trigger_stands())
        return trigger_fired();
    uint64_t total = read_total_us(), waited_us = total - last_total_us,
             passed_us = (now_ns - last_ns) / 1000;
    last_total_us = total;
    last_ns = now_ns;
    return total != 0 && passed_us != 0 && waited_us * 100 >= passed_us * SHARE_PERCENT;
}

void pressure_fork_child(void) {
    begun = false;
    trigger_fd = -1; /* closed with the parent's, at the latest by exec */
    if (!without_trigger)
        file[0] = '\0';
}
