// SPDX-License-Identifier: Apache-2.0
//
// See work.hpp.
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "work.hpp"

namespace tail {

namespace {

// The kernel's struct sched_attr in its first version, under a name that no libc has.
struct Scheduling {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period; // ns
};

bool get(Scheduling *scheduling) {
    return syscall(SYS_sched_getattr, 0, scheduling, sizeof *scheduling, 0) == 0;
}

bool take_short_slice() {
    constexpr std::uint64_t kShortest = 100000, kResetOnFork = 1;
    Scheduling scheduling{};
    if (!get(&scheduling) || scheduling.policy != SCHED_OTHER)
        return false;
    scheduling.size = sizeof scheduling;
    scheduling.runtime = kShortest;
    scheduling.flags |= kResetOnFork;
    return syscall(SYS_sched_setattr, 0, &scheduling, 0) == 0 && get(&scheduling) &&
           scheduling.runtime == kShortest;
}

} // namespace

Promptness run_promptly() {
    sched_param lowest{};
    lowest.sched_priority = 1;
    if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest) == 0)
        return Promptness::kRealTime;
    return take_short_slice() ? Promptness::kShortSlice : Promptness::kNone;
}

} // namespace tail
