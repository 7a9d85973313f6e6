// SPDX-License-Identifier: Apache-2.0
//
// What a request does, and the two clocks; for both ends.
#ifndef THRUM_BENCH_TAIL_WORK_HPP
#define THRUM_BENCH_TAIL_WORK_HPP

#include <cstdint>
#include <ctime>

namespace tail {

inline std::uint64_t clock_ns(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1000000000 + static_cast<std::uint64_t>(time.tv_nsec);
}

inline std::uint64_t now_ns() {
    return clock_ns(CLOCK_MONOTONIC);
}

// So many steps, however long they take: by the clock, a request that is preempted would have less to do than one that is
// not. Each step needs the one before it, so that Go's compiler can make nothing else of it than this one.
inline void compute(std::uint64_t steps) {
    std::uint64_t x = 1;
    for (std::uint64_t i = steps; i > 0; i--) {
        x = x * 6364136223846793005 + 1442695040888963407;
        __asm__ volatile("" : "+r"(x));
    }
}

// The calling kernel thread stands for a network card and its driver: it runs for some microseconds when something
// arrives, and should do so at once, also where all CPUs are busy. As a real-time thread, where the process may have
// such; else by a short slice, which Linux grants to all from 6.12 on, and which leaves it late by milliseconds now
// and then. What it starts does not inherit that.
enum class Promptness { kRealTime, kShortSlice, kNone };
Promptness run_promptly();

} // namespace tail

#endif
