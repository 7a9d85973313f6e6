// SPDX-License-Identifier: Apache-2.0
//
// In the place of symbols_elfutils.cpp where a build has no elfutils: programs and libraries by name, functions by where
// they lie in the file.
#include <map>

#include "maps.hpp"
#include "symbols.hpp"
#include "tools/text.hpp"

namespace thrum {

class Symbols::Modules {
  public:
    explicit Modules(const std::string &maps) : mappings_(mappings_of(maps)) {}

    const Symbol &at(std::uint64_t address) {
        Symbol &symbol = known_[address];
        const Mapping *mapping = mapping_at(mappings_, address);
        if (mapping == nullptr || !mapping->is_of_file())
            return symbol;
        symbol.path = mapping->path;
        symbol.module = file_name(symbol.path);
        symbol.offset = symbol.linked = address - mapping->start + mapping->offset;
        return symbol;
    }

  private:
    std::vector<Mapping> mappings_;
    std::map<std::uint64_t, Symbol> known_;
};

Symbols::Symbols(const std::string &maps, std::optional<pid_t>) : modules_(std::make_unique<Modules>(maps)) {}

Symbols::~Symbols() = default;

const Symbol &Symbols::at(std::uint64_t address) const {
    return modules_->at(address);
}

std::vector<Symbol> Symbols::with_inlined(std::uint64_t address) const {
    return {at(address)};
}

std::string Symbols::section_at(std::uint64_t) const {
    return "";
}

std::string Symbols::name_at(std::uint64_t) const {
    return "";
}

std::uint64_t Symbols::pointer_at(std::uint64_t) const {
    return 0;
}

bool Symbols::is_unwindable(std::uint64_t) const {
    return false;
}

std::optional<Import> Symbols::import_at(std::uint64_t, std::uint64_t) const {
    return std::nullopt;
}

} // namespace thrum
