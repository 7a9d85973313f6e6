// SPDX-License-Identifier: Apache-2.0
//
// Whether threads help, from the times of the bare runs, and the sentence that says so. Used by rules.cpp.
//
// S is the speedup of the most threads, I what the cores allow, C the ratio of their CPU times:
//
//   S < 0.95                     slower
//   S < 1.15                     no faster
//   S >= 0.75 I                  scales
//   otherwise                    scales with losses
//   others kept the program from CPUs that it wanted: inconclusive, unless CPU time alone tells. The wall time of the
//   most threads is C / I of one thread's at best, so from C = 1.1 I on they are no faster on any machine.
#pragma once

#include <string>

#include "stat/facts.hpp"

namespace thrum::stat {

Outcome outcome_of(const Facts &facts, const std::string &failure);
// After outcome and findings have been filled.
std::string verdict_text(const Facts &facts, const std::string &failure);

// "others used 1.2 of 2 CPUs, and the program got 0.9 of the 2.0 that it wanted".
std::string busy_text(const Facts &facts);

} // namespace thrum::stat
