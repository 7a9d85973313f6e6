// SPDX-License-Identifier: Apache-2.0
//
// In the place of symbols_elfutils.cpp where a build has no elfutils: programs and libraries by name, functions by where
// they lie in the file.
#include <cstdio>
#include <map>
#include <sstream>

#include "symbols.hpp"

namespace thrum {

class Symbols::Modules {
  public:
    explicit Modules(const std::string &maps) {
        std::istringstream lines(maps);
        for (std::string line; std::getline(lines, line);)
            add(line);
    }

    const Symbol &at(std::uint64_t address) {
        Symbol &symbol = known_[address];
        const auto behind = ranges_.upper_bound(address);
        if (behind == ranges_.begin() || address >= std::prev(behind)->second.end)
            return symbol;
        const auto &[begin, range] = *std::prev(behind);
        symbol.module = range.module;
        symbol.offset = address - begin + range.offset;
        return symbol;
    }

  private:
    struct Range {
        std::uint64_t end, offset;
        std::string module;
    };

    // "START-END PERMISSIONS OFFSET DEVICE INODE PATH"
    void add(const std::string &line) {
        unsigned long long begin = 0, end = 0, offset = 0;
        if (std::sscanf(line.c_str(), "%llx-%llx %*s %llx", &begin, &end, &offset) == 3 &&
            line.find('/') != std::string::npos)
            ranges_[begin] = {end, offset, line.substr(line.rfind('/') + 1)};
    }

    std::map<std::uint64_t, Range> ranges_;
    std::map<std::uint64_t, Symbol> known_;
};

Symbols::Symbols(const std::string &maps) : modules_(std::make_unique<Modules>(maps)) {}

Symbols::~Symbols() = default;

const Symbol &Symbols::at(std::uint64_t address) const {
    return modules_->at(address);
}

} // namespace thrum
