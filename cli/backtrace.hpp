// SPDX-License-Identifier: Apache-2.0
//
// Backtraces of threads of another process, by elfutils' libdw. Nothing where a module has no unwind tables. Names
// for the addresses: symbols.hpp.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace thrum {

// Addresses within the calls, innermost first.
using Backtrace = std::vector<std::uint64_t>;

// The word at an address; false where that is not known.
using ReadWord = std::function<bool(std::uint64_t address, std::uint64_t &word)>;

// What a kernel thread was at.
struct Stopped {
    Backtrace backtrace;
    std::uint64_t stack_pointer = 0; // 0: not known
};

class Backtracer {
  public:
    explicit Backtracer(pid_t pid);
    // Of a process that may have ended: by the text of its maps file, and what was kept of its stacks.
    Backtracer(const std::string &maps, ReadWord read, std::optional<pid_t> process = std::nullopt);
    ~Backtracer();
    Backtracer(const Backtracer &) = delete;
    Backtracer &operator=(const Backtracer &) = delete;

    // From registers by their DWARF numbers; bits of `known` say which are known. `pc`: where it resumes, which is
    // behind a call, or the present address. `is_whole`: whether the backtrace reached the thread's start.
    enum class At : std::uint8_t { kBehindCall, kInstruction };
    Backtrace from_registers(const std::uint64_t *registers, std::uint64_t known, std::uint64_t pc,
                             At at = At::kBehindCall, bool *is_whole = nullptr) const;

    // Of a kernel thread, which is stopped for that moment.
    Stopped of_thread(pid_t tid) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace thrum
