// SPDX-License-Identifier: Apache-2.0
//
// System calls of a program by kind, counted by the kernel: a tracepoint for each, which root and CAP_PERFMON may use.
// Used by exact.cpp.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/descriptor.hpp"

namespace thrum::stat {

class CallEvents {
  public:
    // Of a child before its execve(2), with all threads and processes that it will start. False: that is not allowed here.
    // `with_trapped`: those as well that libthrum-stat.so counts where it is in the program.
    bool begin(pid_t child, bool with_trapped);
    // Those that were made, by name.
    std::vector<std::pair<std::string, std::uint64_t>> counts() const;

  private:
    void add(const char *call, pid_t child);

    std::vector<std::pair<std::string, Descriptor>> events_;
};

} // namespace thrum::stat
