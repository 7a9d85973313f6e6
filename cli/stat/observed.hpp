// SPDX-License-Identifier: Apache-2.0
//
// What the samplers hand on, before it is known whose addresses these are: filled by sampler.cpp (from /proc),
// profile.cpp (CPU samples) and exact.cpp (from libthrum-stat.so), read by unwind.cpp and analyse.cpp.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stat/report.hpp"

namespace thrum::stat {

// A thread's registers and what lay on its stack from the stack pointer up. Or, where a probe in the program has unwound
// it: the return addresses, innermost first.
struct RawStack {
    std::uint64_t pc = 0, sp = 0, bp = 0;
    bool has_bp = false;                  // /proc/PID/task/TID/syscall shows pc and sp only
    std::vector<std::uint64_t> registers; // as perf has them (native.hpp); empty: not known
    std::vector<std::byte> bytes;
    std::vector<std::uint64_t> addresses;
};

// The text of /proc/PID/maps at some moment, for addresses sampled from then on.
struct Maps {
    double since = 0; // seconds since the program began
    std::string text;
    pid_t process = 0; // that still has them mapped; 0: it may have ended
    pid_t owner = 0;   // the process that had them, whether it has ended or not; 0: not known
};

// Maps of a program that has ended (its files are still there) and the stacks that were sampled in it.
class Observed {
  public:
    std::vector<Maps> maps;
    std::vector<RawStack> stacks;
    std::vector<std::vector<Frame>> python; // functions of Python programs, innermost first (python.hpp)
};

} // namespace thrum::stat
