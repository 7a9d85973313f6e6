// SPDX-License-Identifier: Apache-2.0
//
// Times as seconds: of the clock that runs are measured with, and of what the kernel accounts.
#pragma once

#include <sys/time.h>
#include <time.h>

namespace thrum {

inline double seconds_on(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

inline double seconds_now() {
    return seconds_on(CLOCK_MONOTONIC);
}

inline double seconds_of(const timeval &time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

} // namespace thrum
