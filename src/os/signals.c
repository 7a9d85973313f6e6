// SPDX-License-Identifier: Apache-2.0
/* Telling a thread's own pending signals from the process's; see signals.h. */
#include "os/signals.h"

#include <fcntl.h>
#include <string.h>

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

sigbits signals_pending_thread(void) {
    char status[4096];
    long fd = sys(SYS_openat, AT_FDCWD, "/proc/thread-self/status", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return SIGBITS_ALL;
    long length = sys(SYS_read, fd, status, sizeof status - 1);
    sys(SYS_close, fd);
    if (length <= 0)
        return SIGBITS_ALL;
    status[length] = '\0';
    const char *at = strstr(status, "\nSigPnd:\t");
    if (at == NULL)
        return SIGBITS_ALL;
    sigbits bits = 0;
    for (at += sizeof "\nSigPnd:\t" - 1; hex_digit(*at) >= 0; at++)
        bits = bits << 4 | (sigbits)hex_digit(*at);
    return bits;
}
