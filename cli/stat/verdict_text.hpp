// SPDX-License-Identifier: Apache-2.0
//
// Whether threads help, from the times of the bare runs, and the sentence that says so. Used by rules/table.cpp.
//
// S is the speedup of the most threads with the interval that it lies in (scaling.hpp), I what the cores allow, C the ratio
// of the CPU times:
//
//   all runs below 20 ms         too short
//   S < 0.95, all of it below 1  slower
//   S < 1.15                     no faster
//   all of the interval above 1  scales where S >= 0.75 I, otherwise scales with losses
//   otherwise                    no difference: it may be chance. So it is with S from 0.95 to 1.15 where the interval leaves
//                                0.8 to 1.3
//   others kept the program from CPUs that it wanted: inconclusive, unless CPU time alone tells. The wall time of the
//   most threads is C / I of one thread's at best, so from C = 1.1 I on they are no faster on any machine.
#pragma once

#include <string>

#include "stat/facts.hpp"

namespace thrum::stat {

Outcome outcome_of(const Facts &facts, const std::string &failure);
// After outcome and findings have been filled.
std::string verdict_text(const Facts &facts, const std::string &failure);

// Where facts.is_busy: "others used 1.2 of 2 CPUs, and the program got 0.90 of the 2.00 that it wanted".
std::string busy_text(const Facts &facts);

} // namespace thrum::stat
