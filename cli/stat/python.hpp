// SPDX-License-Identifier: Apache-2.0
//
// Which functions of a Python program a thread is in: CPython's own stack, read from its memory without its help while the
// thread sleeps. On the C stack all of them are the same function of the interpreter's.
//
// CPython 3.11 only: where its fields are differs from version to version. What is read is checked as far as it can be, for
// others write there meanwhile. Used by sampler.cpp.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "maps.hpp"
#include "stat/report.hpp"

namespace thrum::stat {

// The line of an instruction, by the table that goes with a code object; `unit`: which of its two-byte units it is in.
int python_line(const std::vector<unsigned char> &table, int first_line, long unit);

class Python {
  public:
    // Reads exactly so many bytes of the process; false where that is impossible.
    using Read = std::function<bool(std::uint64_t address, void *to, std::size_t bytes)>;

    // The interpreter in a process, if there is one. `why_not`: its stacks cannot be read, a sentence.
    static std::optional<Python> find(pid_t pid, const std::vector<Mapping> &mappings, Read read,
                                      std::string &why_not);

    // Innermost first; empty: it runs no Python code, or none that could be read.
    std::vector<Frame> frames(pid_t thread);

  private:
    struct Code {
        std::uint64_t name = 0, file = 0,
                      lines = 0; // where these objects are: another code may come to lie here
        int first_line = 0;
        std::vector<unsigned char> table;
        Frame frame;
    };

    Python(std::uint64_t runtime, std::string module, Read read)
        : runtime_(runtime), module_(std::move(module)), read_(std::move(read)) {}

    std::uint64_t word_at(std::uint64_t address) const; // 0 where it cannot be read
    std::uint64_t search_state(pid_t thread) const;
    std::uint64_t state_of(pid_t thread);
    bool is_code(std::uint64_t type);
    const Code *code_at(std::uint64_t address);
    std::optional<std::string> text_at(std::uint64_t address) const;
    std::optional<std::vector<unsigned char>> bytes_at(std::uint64_t address) const;

    std::uint64_t runtime_; // where _PyRuntime is
    std::string module_;
    Read read_;
    std::uint64_t code_type_ = 0;
    std::map<pid_t, std::uint64_t> states_;
    std::map<std::uint64_t, Code> codes_;
};

// Python's frames in place of the interpreter's that run them.
std::vector<Frame> with_python(std::vector<Frame> stack, const std::vector<Frame> &python);

} // namespace thrum::stat
