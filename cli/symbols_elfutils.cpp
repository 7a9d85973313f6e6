// SPDX-License-Identifier: Apache-2.0
//
// Looking symbols up with elfutils, which reads symbol tables and DWARF. Where a build has it not, symbols_none.cpp stands
// in this file's place.
#include <cxxabi.h>
#include <elfutils/libdwfl.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "symbols.hpp"

namespace thrum {

namespace {

std::string last_component(const char *path) {
    const std::string whole = path != nullptr ? path : "";
    return whole.substr(whole.rfind('/') + 1);
}

std::string demangled(const char *name) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> readable(
        abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
    return status == 0 && readable != nullptr ? readable.get() : name;
}

} // namespace

class Symbols::Modules {
  public:
    explicit Modules(const std::string &maps) : dwfl_(dwfl_begin(&kCallbacks), dwfl_end) {
        if (dwfl_ == nullptr)
            return;
        std::string text = maps; // fmemopen wants to be able to write
        const std::unique_ptr<std::FILE, decltype(&std::fclose)> file(
            text.empty() ? nullptr : fmemopen(text.data(), text.size(), "r"), std::fclose);
        dwfl_report_begin(dwfl_.get());
        if (file != nullptr)
            dwfl_linux_proc_maps_report(dwfl_.get(), file.get()); // what it cannot read is not there
        dwfl_report_end(dwfl_.get(), nullptr, nullptr);
    }

    const Symbol &at(std::uint64_t address) {
        const auto [found, is_new] = known_.try_emplace(address);
        if (is_new)
            found->second = look_up(address);
        return found->second;
    }

  private:
    static constexpr Dwfl_Callbacks kCallbacks = {dwfl_linux_proc_find_elf, dwfl_standard_find_debuginfo,
                                                  nullptr, nullptr};

    Symbol look_up(std::uint64_t address) const {
        Symbol symbol;
        Dwfl_Module *module = dwfl_ != nullptr ? dwfl_addrmodule(dwfl_.get(), address) : nullptr;
        if (module == nullptr)
            return symbol;
        Dwarf_Addr start = 0;
        symbol.module = last_component(
            dwfl_module_info(module, nullptr, &start, nullptr, nullptr, nullptr, nullptr, nullptr));
        symbol.offset = address - start;
        GElf_Sym entry;
        GElf_Off offset = 0;
        if (const char *name =
                dwfl_module_addrinfo(module, address, &offset, &entry, nullptr, nullptr, nullptr)) {
            symbol.function = demangled(name);
            symbol.offset = offset;
        }
        find_line(module, address, symbol);
        return symbol;
    }

    static void find_line(Dwfl_Module *module, std::uint64_t address, Symbol &symbol) {
        if (Dwfl_Line *line = dwfl_module_getsrc(module, address))
            symbol.file =
                last_component(dwfl_lineinfo(line, nullptr, &symbol.line, nullptr, nullptr, nullptr));
        else
            find_line_in_units(module, address, symbol);
    }

    // Clang writes no table of which unit has which addresses.
    static void find_line_in_units(Dwfl_Module *module, std::uint64_t address, Symbol &symbol) {
        Dwarf_Addr bias = 0;
        for (Dwarf_Die *unit = nullptr; (unit = dwfl_module_nextcu(module, unit, &bias)) != nullptr;) {
            if (dwarf_haspc(unit, address - bias) != 1)
                continue;
            Dwarf_Line *line = dwarf_getsrc_die(unit, address - bias);
            if (line != nullptr && dwarf_lineno(line, &symbol.line) == 0)
                symbol.file = last_component(dwarf_linesrc(line, nullptr, nullptr));
            return;
        }
    }

    std::unique_ptr<Dwfl, decltype(&dwfl_end)> dwfl_;
    std::map<std::uint64_t, Symbol> known_;
};

Symbols::Symbols(const std::string &maps) : modules_(std::make_unique<Modules>(maps)) {}

Symbols::~Symbols() = default;

const Symbol &Symbols::at(std::uint64_t address) const {
    return modules_->at(address);
}

} // namespace thrum
