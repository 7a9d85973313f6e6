// SPDX-License-Identifier: Apache-2.0
//
// Copies of threads' stacks, each kept once: two are the same where the same return addresses lie at the same places,
// whatever thread's they are. Used by sampler.cpp and switches.cpp.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "maps.hpp"
#include "stat/observed.hpp"

namespace thrum::stat {

class StackKeeper {
  public:
    explicit StackKeeper(Observed &observed) : observed_(observed) {}

    // `memory`: a descriptor of the process's /proc/PID/mem.
    void open(pid_t pid, int memory);
    // The code that return addresses point into, from now on.
    void set_code(std::vector<Mapping> code) { code_ = std::move(code); }
    const std::vector<Mapping> &code() const { return code_; }
    bool is_code(std::uint64_t word) const;

    // Of a thread that sleeps, or slept a moment ago.
    RawStack copy(std::uint64_t sp, std::uint64_t pc);
    // An index into Observed::stacks; SIZE_MAX if there is no room for more of them. What lies on it above the last
    // return address is left out, if the present code is known.
    std::size_t add(RawStack stack);

  private:
    void copy_bytes(std::uint64_t sp, std::vector<std::byte> &bytes);

    Observed &observed_;
    pid_t pid_ = 0;
    int memory_ = -1;
    bool use_memory_ = false; // where process_vm_readv(2) gives nothing
    std::vector<Mapping> code_;
    std::size_t bytes_ = 0;                                // of all that are kept
    std::unordered_map<std::uint64_t, std::size_t> known_; // hash to index
};

} // namespace thrum::stat
