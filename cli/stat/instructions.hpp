// SPDX-License-Identifier: Apache-2.0
//
// What stands in the files of a program at its addresses: which of them are behind a call, and where that call goes to.
// Used by unwind.cpp, after the program has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "maps.hpp"
#include "native.hpp"
#include "tools/descriptor.hpp"

namespace thrum::stat {

class Code {
  public:
    // Whose instructions these are. Both are read everywhere, so that tests can read both.
    enum class Set : std::uint8_t { kX86_64, kAarch64 };
    static constexpr Set kOwn = native::kIsX86_64 ? Set::kX86_64 : Set::kAarch64;

    // `process`: as open_mapped() takes it.
    explicit Code(const std::vector<Mapping> &mappings, Set set = kOwn, pid_t process = 0)
        : mappings_(mappings), set_(set), process_(process) {}

    // Is there a call just before? `target`: where it goes to, or 0 where that is not written in the instruction.
    bool is_behind_call(std::uint64_t address, std::uint64_t &target);

    // Functions of other files are called through a word that the dynamic linker fills in: by an entry of the procedure
    // linkage table, or by the call itself. The word that the call just before goes through; 0: it goes through none.
    std::uint64_t word_of_call(std::uint64_t address);

    // How far the frame pointer is above the stack pointer at the calls of a function, by how that begins; nothing where it does
    // not begin with a frame.
    std::optional<std::uint64_t> size_of_frame(std::uint64_t function);

    // Where the direct jump leads that stands at an address; 0: none stands there.
    std::uint64_t target_of_jump(std::uint64_t address);
    // Likewise of an entry that begins here.
    std::uint64_t word_of_entry(std::uint64_t entry);

    // False: no such bytes of code in a file.
    bool read(std::uint64_t address, void *to, std::size_t bytes);

  private:
    bool is_behind_x86_64_call(std::uint64_t address, std::uint64_t &target);
    bool is_behind_aarch64_call(std::uint64_t address, std::uint64_t &target);
    std::uint64_t word_of_x86_64_entry(std::uint64_t entry);
    std::uint64_t word_of_aarch64_entry(std::uint64_t entry);
    std::uint64_t word_of_x86_64_call(std::uint64_t address);
    std::uint64_t word_of_aarch64_call(std::uint64_t address);

    const std::vector<Mapping> &mappings_;
    Set set_;
    pid_t process_;
    std::map<std::string, Descriptor> files_;
};

} // namespace thrum::stat
