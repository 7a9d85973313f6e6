// SPDX-License-Identifier: Apache-2.0
#include "stat/allowance.hpp"

#include <time.h>

#include <algorithm>

namespace thrum::stat {

double thread_cpu_time() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void Allowance::begin(double now) {
    begun_ = thread_cpu_time();
    left_ = std::min(kMost, left_ + share_ * (now - earned_until_));
    earned_until_ = now;
}

void Allowance::end() {
    left_ -= thread_cpu_time() - begun_;
}

} // namespace thrum::stat
