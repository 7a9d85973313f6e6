// SPDX-License-Identifier: Apache-2.0
//
// What stands in the files of a program at its addresses: which of them are behind a call, and where that call goes to.
// Used by unwind.cpp, after the program has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "maps.hpp"

namespace thrum::stat {

class Code {
  public:
    explicit Code(const std::vector<Mapping> &mappings) : mappings_(mappings) {}

    // Is there a call just before? `target`: where it goes to, or 0 where that is not written in the instruction.
    bool is_behind_call(std::uint64_t address, std::uint64_t &target);

    // Functions of other files are called through a word that the dynamic linker fills in: by an entry of the procedure
    // linkage table, or by the call itself. The word that the call just before goes through; 0: it goes through none.
    std::uint64_t word_of_call(std::uint64_t address);

  private:
    bool read(std::uint64_t address, void *to, std::size_t bytes);
    std::uint64_t word_of_entry(std::uint64_t entry);

    const std::vector<Mapping> &mappings_;
    std::map<std::string, std::ifstream> files_;
};

} // namespace thrum::stat
