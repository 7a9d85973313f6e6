// SPDX-License-Identifier: Apache-2.0
//
// The holder of a lock while others wait for it: what it does meanwhile, and whether it can ever release the lock.
// Used by analyse.cpp.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "stat/layers.hpp"
#include "stat/report.hpp"

namespace thrum::stat {

constexpr pid_t kHolderUnknown = -1; // another process may have it, or it may be no lock after all

// A sample of a thread, and what it has become.
struct Look {
    double at = 0;
    std::uint64_t run_ns = 0; // so far
    Doing doing = Doing::kRunning;
    std::size_t site = SIZE_MAX; // SIZE_MAX: it ran
    // the holder of the lock that it waits for, or the thread whose end it waits for; 0: not known, but a thread
    pid_t awaited = 0;
    bool is_timed = false;                                       // its wait has a time limit
    ProcSample::Holding holding = ProcSample::Holding::kUnknown; // what the lock holder did
    Scheduling scheduling, holders;
};

// A thread, from its first sample to its last.
struct Life {
    pid_t id = 0;
    double begin = 0;           // when it was known
    std::optional<double> gone; // when it was missed
    std::vector<Look> looks;
};

bool is_asleep(Doing doing); // and not for a lock

// One that was seen asleep at these sites, each time that it was, in so many looks at it.
Holder sleeping_holder(const std::vector<Site> &sites, const std::vector<std::size_t> &slept,
                       std::uint64_t looks);

// Fills LockUse::holder.
void add_holders(const std::vector<Life> &lives, const std::vector<Site> &sites, std::vector<LockUse> &locks);

// At the last moment that was seen. `are_all`: there were no other threads then. Sites are indices into what was handed to
// add_holders().
Deadlock find_deadlock(const std::vector<Life> &lives, bool are_all);

} // namespace thrum::stat
