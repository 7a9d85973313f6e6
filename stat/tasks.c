// SPDX-License-Identifier: Apache-2.0
/* The other threads that there are when this library starts. The dynamic linker runs the constructors of other libraries
 * first, and these may have made some: pools of threads, helpers of allocators.
 *
 * Read from /proc by system calls alone: libc's functions for folders and streams call malloc, which may be the
 * program's. */
#include <fcntl.h>
#include <string.h>

#include "os/file.h"
#include "os/syscall.h"
#include "stat.h"

struct entry { /* as getdents64(2) gives it */
    uint64_t inode, offset;
    uint16_t length;
    uint8_t type;
    char name[];
};

static int number_of(const char *name) {
    int number = 0;
    for (; *name >= '0' && *name <= '9'; name++)
        number = number * 10 + (*name - '0');
    return number; /* 0: "." or ".." */
}

void tasks_each(void (*look)(int thread, void *argument), void *argument) {
    const int self = (int)sys(SYS_gettid);
    const long fd = sys(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _Alignas(struct entry) char block[2048];
    for (long got; fd >= 0 && (got = sys(SYS_getdents64, fd, block, sizeof block)) > 0;)
        for (long at = 0; at < got;) {
            const struct entry *entry = (const struct entry *)(const void *)(block + at);
            const int thread = number_of(entry->name);
            if (thread != 0 && thread != self)
                look(thread, argument);
            at += entry->length;
        }
    if (fd >= 0)
        sys(SYS_close, fd);
}

/* --- what one of them blocks ------------------------------------------------------------------------------ */

static char *append(char *to, const char *more) {
    const size_t length = strlen(more);
    memcpy(to, more, length + 1);
    return to + length;
}

static void path_of_status(int thread, char path[48]) {
    char digits[12] = "", *first = digits + sizeof digits - 1;
    for (; thread > 0; thread /= 10)
        *--first = (char)('0' + thread % 10);
    append(append(append(path, "/proc/self/task/"), first), "/status");
}

/* 0 where it has ended, or does not say. */
static uint64_t mask_of(int thread) {
    const char name[] = "\nSigBlk:\t";
    char path[48], status[4096];
    path_of_status(thread, path);
    file_read_status(path, status, sizeof status);
    const char *line = strstr(status, name);
    return line != NULL ? file_hexadecimal(line + sizeof name - 1) : 0;
}

/* libc blocks all signals in a thread that begins, for a moment or until it gets a CPU. So there are more looks, but no
 * more than so many for all threads. */
bool tasks_keep_blocked(int thread, int signal_number) {
    static unsigned looks = 50;
    const struct timespec pause = {0, 1000000};
    while ((mask_of(thread) & bit_of(signal_number)) != 0) {
        if (looks == 0)
            return true;
        looks--;
        sys(SYS_nanosleep, &pause, 0);
    }
    return false;
}
