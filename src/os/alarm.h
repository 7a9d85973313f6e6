// SPDX-License-Identifier: Apache-2.0
/* A kernel timer that sends a signal to one kernel thread (timer_create(2), SIGEV_THREAD_ID). By raw system calls:
 * libc's functions keep a list of their own. Any thread may set one, signal handlers too. */
#ifndef THRUM_OS_ALARM_H
#define THRUM_OS_ALARM_H

#include <stdint.h>

#include "base/inside.h"

struct alarm {
    int32_t id; /* ALARM_NONE: there is none, and nothing happens */
};

enum { ALARM_NONE = -1 };

/* 0 or EAGAIN, and *alarm is none. */
int alarm_make(struct alarm *alarm, int32_t tid, int signal);
void alarm_delete(const struct alarm *alarm);

/* The same signal at once, without a timer. 0 or an errno. Like a timer's it does not outlive an exec, where the program that
 * comes has no handler for it. */
SIGSAFE int alarm_ring(int32_t tid, int signal);

/* First at `first` (ns, CLOCK_MONOTONIC), then each `period` ns, 0: once. `first` 0: never. */
SIGSAFE void alarm_set(const struct alarm *alarm, uint64_t first, uint64_t period);

#endif
