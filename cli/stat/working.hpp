// SPDX-License-Identifier: Apache-2.0
//
// The threads that do a part of the work, and the CPUs on which they may do it. For the facts (facts.hpp) and the rules.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "stat/report.hpp"

namespace thrum::stat {

constexpr double kDoesWork = 0.05; // of the CPU time of all: the thread, or process, does a part of the work

// With `least` of the CPU time of all.
std::vector<const Thread *> working_threads(const std::vector<Thread> &threads, double least = kDoesWork);

struct Affinity {
    unsigned threads = 0;         // that work
    std::set<unsigned long> cpus; // on which any of these may run
    bool is_known = true;         // of all of them
};
Affinity affinity_of(const Report &report, double least = kDoesWork);

} // namespace thrum::stat
