// SPDX-License-Identifier: Apache-2.0
/* Clocks. The monotonic one comes from the vDSO through libc's clock_gettime, which the preload front end
 * interposes only for thread CPU clocks; those are read here by raw system call. */
#ifndef THRUM_OS_CLOCK_H
#define THRUM_OS_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "os/syscall.h"

static inline uint64_t clock_ns(const struct timespec *time) {
    return (uint64_t)time->tv_sec * UINT64_C(1000000000) + (uint64_t)time->tv_nsec;
}

static inline uint64_t clock_monotonic_ns(void) {
    struct timespec time;
    sys(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
    return clock_ns(&time);
}

/* The same clock as of the kernel's last tick, some milliseconds ago: from the vDSO, in a few nanoseconds. */
static inline uint64_t clock_monotonic_coarse_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return clock_ns(&time);
}

static inline uint64_t clock_thread_cpu_ns(void) {
    struct timespec time;
    sys(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &time);
    return clock_ns(&time);
}

#endif
