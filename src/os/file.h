// SPDX-License-Identifier: Apache-2.0
/* Small files of the kernel's (/proc, /sys). They use a descriptor's number briefly, which other threads of the
 * program may notice, unless the reader has a table of its own (preempt/monitor.c). */
#ifndef THRUM_OS_FILE_H
#define THRUM_OS_FILE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/syscall.h"

/* Reads the beginning of a file and ends it with a zero byte. How much there was, or -errno: then `text` is empty. */
static inline long file_read(const char *path, char *text, size_t size) {
    text[0] = '\0';
    long fd = sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fd;
    long length = sys(SYS_read, fd, text, size - 1);
    sys(SYS_close, fd);
    text[length > 0 ? length : 0] = '\0';
    return length;
}

/* The same of /proc/.../status, without what its line "Groups:" says. That may be any length, and much of what is looked for comes
 * behind it. */
static inline long file_read_status(const char *path, char *text, size_t size) {
    static const char groups[] = "\nGroups:";
    char part[2048] = ""; /* clang-tidy does not know that sys() writes to it */
    size_t length = 0, matched = 0;
    bool drops = false;
    text[0] = '\0';
    long fd = sys(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC), got = fd;
    while (fd >= 0 && (got = sys(SYS_read, fd, part, sizeof part)) > 0) {
        for (long i = 0; i < got; i++) {
            if (drops && part[i] != '\n')
                continue;
            if (length < size - 1)
                text[length++] = part[i];
            matched = part[i] == groups[matched] ? matched + 1 : part[i] == '\n';
            drops = matched == sizeof groups - 1;
            matched = drops ? 0 : matched;
        }
        if (got < (long)sizeof part)
            break;
    }
    if (fd >= 0)
        sys(SYS_close, fd);
    text[length] = '\0';
    return length > 0 ? (long)length : got;
}

/* The hexadecimal number at `at`, as masks stand there; it ends with the first character that is no digit of one. */
static inline uint64_t file_hexadecimal(const char *at) {
    uint64_t value = 0;
    for (;; at++)
        if (*at >= '0' && *at <= '9')
            value = value << 4 | (uint64_t)(*at - '0');
        else if (*at >= 'a' && *at <= 'f')
            value = value << 4 | (uint64_t)(*at - 'a' + 10);
        else
            return value;
}

#endif
