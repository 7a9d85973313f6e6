// SPDX-License-Identifier: Apache-2.0
//
// Who has a lock while others wait for it: what the holder does meanwhile, and whether it can ever give the lock back. Used
// by analyse.cpp.
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
    pid_t awaited = 0;     // who has the lock that it waits for, or whose end; 0: not known, but a thread
    bool is_timed = false; // it goes on after some time, come what may
    ProcSample::Holding holding = ProcSample::Holding::kUnknown; // what who has the lock was at
};

// A thread, from its first sample to its last.
struct Life {
    pid_t id = 0;
    double begin = 0;           // when it was known
    std::optional<double> gone; // when it was missed
    std::vector<Look> looks;
};

// Fills LockUse::holder.
void add_holders(const std::vector<Life> &lives, const std::vector<Site> &sites, std::vector<LockUse> &locks);

// At the last moment that was seen. `are_all`: there were no other threads then. Sites are indices into what was handed to
// add_holders().
Deadlock find_deadlock(const std::vector<Life> &lives, bool are_all);

} // namespace thrum::stat
