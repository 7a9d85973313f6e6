// SPDX-License-Identifier: Apache-2.0
/* Telling a thread's own pending signals from the process's; see signals.h. */
#include "os/signals.h"

#include <string.h>
#include <time.h>

#include "os/file.h"

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

sigbits signals_pending_thread(void) {
    char status[4096];
    if (file_read_status("/proc/thread-self/status", status, sizeof status) <= 0)
        return SIGBITS_ALL;
    const char *at = strstr(status, "\nSigPnd:\t");
    if (at == NULL)
        return SIGBITS_ALL;
    sigbits bits = 0;
    for (at += sizeof "\nSigPnd:\t" - 1; hex_digit(*at) >= 0; at++)
        bits = bits << 4 | (sigbits)hex_digit(*at);
    return bits;
}

void signals_drop_pending(sigbits known) {
    sigbits own;
    while ((signals_pending() & ~known) != 0 && (own = signals_pending_thread()) != 0 && own != SIGBITS_ALL) {
        struct timespec now = {0, 0};
        sys(SYS_rt_sigtimedwait, &own, NULL, &now, sizeof own);
    }
}
