// SPDX-License-Identifier: Apache-2.0
//
// Who called whom in another process, by way of elfutils' libdw. Nothing where a module has no unwind tables. Names for
// the addresses: symbols.hpp.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace thrum {

// Addresses within the calls, innermost first.
using Backtrace = std::vector<std::uint64_t>;

class Backtracer {
  public:
    explicit Backtracer(pid_t pid);
    ~Backtracer();
    Backtracer(const Backtracer &) = delete;
    Backtracer &operator=(const Backtracer &) = delete;

    // From registers by their DWARF numbers; which are known: bits of `known`; `pc`: where it goes on.
    Backtrace from_registers(const std::uint64_t *registers, std::uint64_t known, std::uint64_t pc) const;

    // Of a kernel thread, which is stopped for that moment.
    Backtrace of_thread(pid_t tid) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace thrum
