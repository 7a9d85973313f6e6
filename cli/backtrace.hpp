// SPDX-License-Identifier: Apache-2.0
//
// Names of functions in another process, and who called whom there, by way of elfutils' libdw. Nothing where a module has
// neither symbols nor unwind tables.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace thrum {

class Backtracer {
  public:
    explicit Backtracer(pid_t pid);
    ~Backtracer();
    Backtracer(const Backtracer &) = delete;
    Backtracer &operator=(const Backtracer &) = delete;

    // "function", or "" where none is known.
    std::string function(std::uint64_t address) const;

    // "function (file:line)", innermost first. Registers by their DWARF numbers; which are known: bits of `known`; `pc`:
    // where it goes on.
    std::vector<std::string> frames(const std::uint64_t *registers, std::uint64_t known,
                                    std::uint64_t pc) const;

    // Of a kernel thread, which is stopped for that moment.
    std::vector<std::string> frames_of_thread(pid_t tid) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace thrum
