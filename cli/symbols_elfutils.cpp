// SPDX-License-Identifier: Apache-2.0
//
// Looking symbols up with elfutils, which reads symbol tables and DWARF. Where a build has it not, symbols_none.cpp stands
// in this file's place.
#include <cxxabi.h>
#include <dwarf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <tuple>

#include "modules.hpp"
#include "rust_names.hpp"
#include "symbols.hpp"
#include "tools/text.hpp"

namespace thrum {

namespace {

// "random" of "random@@GLIBC_2.2.5".
std::string without_version(const std::string &name) {
    return name.substr(0, name.find('@'));
}

// The same, whatever the version.
bool is_name(const char *versioned, const std::string &name) {
    const std::size_t size = name.size();
    return std::strncmp(versioned, name.c_str(), size) == 0 &&
           (versioned[size] == '\0' || versioned[size] == '@');
}

// Functions may lie in it, and it has no addresses of its own.
bool is_around_functions(Dwarf_Die *die) {
    switch (dwarf_tag(die)) {
    case DW_TAG_namespace:
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_module: return true;
    default: return false;
    }
}

// Adds what has the address among a scope's children and theirs, the outermost first. (dwarf_getscopes() does not look into
// namespaces, in which rustc and clang put whole functions.)
bool add_scopes(Dwarf_Die *around, Dwarf_Addr address, std::vector<Dwarf_Die> &scopes) {
    Dwarf_Die child;
    if (dwarf_child(around, &child) != 0)
        return false;
    do {
        const bool is_scope = dwarf_haspc(&child, address) == 1;
        if (is_scope)
            scopes.push_back(child);
        const bool is_deeper =
            (is_scope || is_around_functions(&child)) && add_scopes(&child, address, scopes);
        if (is_scope || is_deeper)
            return true;
    } while (dwarf_siblingof(&child, &child) == 0);
    return false;
}

// What is nested at an address, the innermost first: blocks, inlined calls, and the function that they are in.
std::vector<Dwarf_Die> scopes_at(Dwarf_Die *unit, Dwarf_Addr address) {
    std::vector<Dwarf_Die> scopes;
    add_scopes(unit, address, scopes);
    std::reverse(scopes.begin(), scopes.end());
    return scopes;
}

const char *linkage_name(Dwarf_Die *die) {
    Dwarf_Attribute attribute;
    for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name})
        if (dwarf_attr_integrate(die, name, &attribute) != nullptr)
            return dwarf_formstring(&attribute);
    return dwarf_diename(die);
}

Dwarf_Word number_at(Dwarf_Die *die, unsigned name) {
    Dwarf_Attribute attribute;
    Dwarf_Word number = 0;
    return dwarf_formudata(dwarf_attr(die, name, &attribute), &number) == 0 ? number : 0;
}

// A word of these is filled in with a function's address, or perhaps a variable's.
bool is_for_address(std::uint64_t type) {
    return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_AARCH64_JUMP_SLOT ||
           type == R_AARCH64_GLOB_DAT;
}

bool is_relative(std::uint64_t type) {
    return type == R_X86_64_RELATIVE || type == R_AARCH64_RELATIVE;
}

// What a word holds that the loader only moves, as linked; 0: it is no such word.
std::uint64_t relative_in(Elf *elf, std::uint64_t word) {
    Elf_Scn *section = nullptr;
    while ((section = elf_nextscn(elf, section)) != nullptr) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_RELA)
            continue;
        Elf_Data *entries = elf_getdata(section, nullptr);
        GElf_Rela entry;
        for (int i = 0; entries != nullptr && gelf_getrela(entries, i, &entry) != nullptr; i++)
            if (entry.r_offset == word && is_relative(GELF_R_TYPE(entry.r_info)))
                return static_cast<std::uint64_t>(entry.r_addend);
    }
    return 0;
}

// Adds a section's relocations, by address as linked.
void add_imports(Elf *elf, Elf_Scn *section, const GElf_Shdr &header,
                 std::map<std::uint64_t, std::string> &imports) {
    Elf_Scn *symbols = elf_getscn(elf, header.sh_link);
    Elf_Data *entries = elf_getdata(section, nullptr);
    Elf_Data *table = symbols != nullptr ? elf_getdata(symbols, nullptr) : nullptr;
    GElf_Shdr named;
    if (entries == nullptr || table == nullptr || gelf_getshdr(symbols, &named) == nullptr)
        return;
    GElf_Rela entry;
    GElf_Sym symbol;
    for (int i = 0; gelf_getrela(entries, i, &entry) != nullptr; i++) {
        const auto index = static_cast<int>(GELF_R_SYM(entry.r_info));
        if (!is_for_address(GELF_R_TYPE(entry.r_info)) || gelf_getsym(table, index, &symbol) == nullptr)
            continue;
        const char *name = elf_strptr(elf, named.sh_link, symbol.st_name);
        imports[entry.r_offset] = name != nullptr ? without_version(name) : "";
    }
}

std::map<std::uint64_t, std::string> imports_of(Elf *elf) {
    std::map<std::uint64_t, std::string> imports;
    Elf_Scn *section = nullptr;
    while (elf != nullptr && (section = elf_nextscn(elf, section)) != nullptr) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) != nullptr && header.sh_type == SHT_RELA)
            add_imports(elf, section, header, imports);
    }
    return imports;
}

// The table before the call-frame information, as linkers write it: a header, and for each function in order where it begins
// and where its information is, counted from the header on.
struct FrameTable {
    struct Header {
        std::uint8_t version, frames_form, count_form, table_form;
        std::int32_t frames;
        std::uint32_t count;
        bool is_usual() const {
            return version == 1 && count_form == DW_EH_PE_udata4 &&
                   table_form == (DW_EH_PE_datarel | DW_EH_PE_sdata4);
        }
    };
    struct Entry {
        std::int32_t begin, information;
    };
};

// The addresses where functions begin, from such a table that is linked at `start`.
std::vector<std::uint64_t> beginnings_in(const Elf_Data &table, std::uint64_t start) {
    std::vector<std::uint64_t> beginnings;
    const auto *bytes = static_cast<const unsigned char *>(table.d_buf);
    FrameTable::Header header{};
    FrameTable::Entry entry{};
    if (bytes == nullptr || table.d_size < sizeof header)
        return beginnings;
    std::memcpy(&header, bytes, sizeof header);
    if (!header.is_usual())
        return beginnings;
    for (std::size_t at = sizeof header;
         beginnings.size() < header.count && at + sizeof entry <= table.d_size; at += sizeof entry) {
        std::memcpy(&entry, bytes + at, sizeof entry);
        beginnings.push_back(start + static_cast<std::uint64_t>(std::int64_t{entry.begin}));
    }
    return beginnings;
}

std::vector<std::uint64_t> beginnings_of(Elf *elf) {
    std::size_t segments = 0;
    if (elf == nullptr || elf_getphdrnum(elf, &segments) != 0)
        return {};
    for (std::size_t i = 0; i < segments; i++) {
        GElf_Phdr segment;
        if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr || segment.p_type != PT_GNU_EH_FRAME)
            continue;
        const Elf_Data *table = elf_getdata_rawchunk(elf, static_cast<std::int64_t>(segment.p_offset),
                                                     segment.p_filesz, ELF_T_BYTE);
        return table != nullptr ? beginnings_in(*table, segment.p_vaddr) : std::vector<std::uint64_t>();
    }
    return {};
}

bool is_in(Dwarf_CFI *information, std::uint64_t address) {
    Dwarf_Frame *found = nullptr;
    const bool is_told = information != nullptr && dwarf_cfi_addrframe(information, address, &found) == 0;
    std::free(found);
    return is_told;
}

// Does call-frame information tell of it?
bool has_information(Dwfl_Module *module, std::uint64_t address) {
    Dwarf_Addr bias = 0;
    Dwarf_CFI *information = dwfl_module_eh_cfi(module, &bias);
    return is_in(information, address - bias);
}

// As debuggers need it alone: Go's compiler writes no other.
bool has_debug_information(Dwfl_Module *module, std::uint64_t address) {
    Dwarf_Addr bias = 0;
    Dwarf_CFI *information = dwfl_module_dwarf_cfi(module, &bias);
    return is_in(information, address - bias);
}

// Mangled names begin so. The demangler takes types as well, whose letters are names in C: "f" would be called float.
std::string demangled(const char *mangled) {
    const std::string whole = mangled;
    const std::string without_suffix =
        whole.substr(0, whole.find(".llvm.")); // of a local one that several units share
    const char *name = without_suffix.c_str();
    if (const std::string rust = rust_name(name); !rust.empty())
        return rust;
    if (std::strncmp(name, "_Z", 2) != 0)
        return name;
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> readable(
        abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
    return status == 0 && readable != nullptr ? without_rust_hash(readable.get()) : name;
}

} // namespace

class Symbols::Modules {
  public:
    Modules(const std::string &maps, std::optional<pid_t> process) : dwfl_(session_of(maps, process)) {}

    const Symbol &at(std::uint64_t address) {
        const auto [found, is_new] = known_.try_emplace(address);
        if (is_new)
            found->second = look_up(address);
        return found->second;
    }

    std::vector<Symbol> with_inlined(std::uint64_t address);

    std::string section_at(std::uint64_t address) const {
        Dwfl_Module *module = dwfl_ != nullptr ? dwfl_addrmodule(dwfl_.get(), address) : nullptr;
        Dwarf_Addr within = address, bias = 0;
        Elf_Scn *section = module != nullptr ? dwfl_module_address_section(module, &within, &bias) : nullptr;
        Elf *elf = section != nullptr ? dwfl_module_getelf(module, &bias) : nullptr;
        GElf_Shdr header;
        std::size_t names = 0;
        if (elf == nullptr || gelf_getshdr(section, &header) == nullptr ||
            elf_getshdrstrndx(elf, &names) != 0)
            return "";
        const char *name = elf_strptr(elf, names, header.sh_name);
        return name != nullptr ? name : "";
    }

    // The name that a word stands for, in the file that it lies in.
    std::string name_at(std::uint64_t word) {
        Dwfl_Module *module = dwfl_ != nullptr ? dwfl_addrmodule(dwfl_.get(), word) : nullptr;
        GElf_Addr bias = 0;
        Elf *elf = module != nullptr ? dwfl_module_getelf(module, &bias) : nullptr;
        if (elf == nullptr)
            return "";
        const auto [imports, is_new] = imports_.try_emplace(module);
        if (is_new)
            imports->second = imports_of(elf);
        const auto found = imports->second.find(word - bias);
        return found != imports->second.end() ? found->second : "";
    }

    // The addend of such a word, moved as its file was.
    std::uint64_t pointer_at(std::uint64_t word) {
        const auto [at, is_new] = pointers_.try_emplace(word);
        Dwfl_Module *module = dwfl_ != nullptr ? dwfl_addrmodule(dwfl_.get(), word) : nullptr;
        GElf_Addr bias = 0;
        Elf *elf = is_new && module != nullptr ? dwfl_module_getelf(module, &bias) : nullptr;
        if (elf != nullptr)
            at->second = relative_in(elf, word - bias);
        if (elf != nullptr && at->second != 0)
            at->second += bias;
        return at->second;
    }

    bool is_unwindable(std::uint64_t address) const {
        Dwfl_Module *module = dwfl_ != nullptr ? dwfl_addrmodule(dwfl_.get(), address) : nullptr;
        return module != nullptr &&
               (has_information(module, address) || has_debug_information(module, address));
    }

    const std::optional<Import> &import_at(std::uint64_t word, std::uint64_t at) {
        const Symbol &function = this->at(at);
        Dwfl_Module *called = dwfl_ != nullptr ? dwfl_addrmodule(dwfl_.get(), at) : nullptr;
        const std::uint64_t begin = function.function.empty() ? 0 : at - function.offset;
        const auto [found, is_new] = known_imports_.try_emplace({word, called, begin});
        if (is_new && called != nullptr)
            found->second = look_up_import(word, called, begin);
        return found->second;
    }

  private:
    Symbol look_up(std::uint64_t address) {
        Symbol symbol;
        Dwfl_Module *module = dwfl_ != nullptr ? dwfl_addrmodule(dwfl_.get(), address) : nullptr;
        if (module == nullptr)
            return symbol;
        Dwarf_Addr start = 0;
        symbol.path = dwfl_module_info(module, nullptr, &start, nullptr, nullptr, nullptr, nullptr, nullptr);
        symbol.module = file_name(symbol.path);
        symbol.offset = address - start;
        GElf_Addr bias = 0;
        symbol.linked = dwfl_module_getelf(module, &bias) != nullptr ? address - bias : symbol.offset;
        GElf_Sym entry;
        GElf_Off offset = 0;
        if (const char *name =
                dwfl_module_addrinfo(module, address, &offset, &entry, nullptr, nullptr, nullptr)) {
            symbol.function = demangled(exported_name(module, name, address - offset).c_str());
            symbol.offset = offset;
        } else {
            symbol.begin = beginning_of(module, address, symbol.linked);
        }
        find_line(module, address, symbol);
        return symbol;
    }

    std::uint64_t beginning_of(Dwfl_Module *module, std::uint64_t address, std::uint64_t linked) {
        const auto [known, is_new] = beginnings_.try_emplace(module);
        GElf_Addr bias = 0;
        if (is_new)
            known->second = beginnings_of(dwfl_module_getelf(module, &bias));
        const auto after = std::upper_bound(known->second.begin(), known->second.end(), linked);
        return after != known->second.begin() && has_information(module, address) ? *(after - 1) : 0;
    }

    // Of names for the same place one without underscores in front: "random" rather than "__random".
    static std::string exported_name(Dwfl_Module *module, const char *name, std::uint64_t address) {
        std::string best = without_version(name);
        if (best[0] != '_' || best.compare(0, 2, "_Z") == 0) // a mangled one
            return best;
        for (int i = 1, count = dwfl_module_getsymtab(module); i < count; i++) {
            GElf_Sym entry;
            GElf_Addr at = 0;
            const char *other = dwfl_module_getsym_info(module, i, &entry, &at, nullptr, nullptr, nullptr);
            if (other != nullptr && at == address && other[0] != '_' && other[0] != '\0' &&
                GELF_ST_BIND(entry.st_info) != STB_LOCAL)
                return without_version(other);
        }
        return best;
    }

    std::optional<Import> look_up_import(std::uint64_t word, Dwfl_Module *called, std::uint64_t begin) {
        const std::string name = name_at(word);
        std::optional<Import> import;
        for (int i = 1, count = name.empty() ? 0 : dwfl_module_getsymtab(called); i < count; i++) {
            GElf_Sym entry;
            GElf_Addr at = 0;
            const char *other = dwfl_module_getsym_info(called, i, &entry, &at, nullptr, nullptr, nullptr);
            if (other == nullptr || entry.st_shndx == SHN_UNDEF || !is_name(other, name))
                continue;
            if (!import)
                import = Import{demangled(name.c_str()), false};
            import->is_same |= at == begin;
        }
        return import;
    }

    static void set_source(Symbol &symbol, const char *source) {
        symbol.source = source != nullptr ? source : "";
        symbol.file = file_name(source != nullptr ? source : "");
    }

    static void find_line(Dwfl_Module *module, std::uint64_t address, Symbol &symbol) {
        if (Dwfl_Line *line = dwfl_module_getsrc(module, address)) {
            set_source(symbol, dwfl_lineinfo(line, nullptr, &symbol.line, nullptr, nullptr, nullptr));
            return;
        }
        Dwarf_Addr bias = 0;
        Dwarf_Die *unit = find_unit(module, address, bias);
        Dwarf_Line *line = unit != nullptr ? dwarf_getsrc_die(unit, address - bias) : nullptr;
        if (line != nullptr && dwarf_lineno(line, &symbol.line) == 0)
            set_source(symbol, dwarf_linesrc(line, nullptr, nullptr));
    }

    static Dwarf_Die *find_unit(Dwfl_Module *module, std::uint64_t address, Dwarf_Addr &bias) {
        if (Dwarf_Die *unit = dwfl_module_addrdie(module, address, &bias))
            return unit;
        // Clang writes no table of which unit has which addresses.
        Dwarf_Die *unit = nullptr;
        while ((unit = dwfl_module_nextcu(module, unit, &bias)) != nullptr)
            if (dwarf_haspc(unit, address - bias) == 1)
                break;
        return unit;
    }

    DwflSession dwfl_;
    std::map<std::uint64_t, Symbol> known_;
    std::map<Dwfl_Module *, std::map<std::uint64_t, std::string>> imports_; // by address as linked
    std::map<std::uint64_t, std::uint64_t> pointers_;                       // by word
    std::map<Dwfl_Module *, std::vector<std::uint64_t>> beginnings_;        // of functions, as linked
    // By word, module that was come to, and where the function there begins.
    std::map<std::tuple<std::uint64_t, Dwfl_Module *, std::uint64_t>, std::optional<Import>> known_imports_;
};

std::vector<Symbol> Symbols::Modules::with_inlined(std::uint64_t address) {
    Symbol around = at(address);
    std::vector<Symbol> chain;
    Dwfl_Module *module = dwfl_ != nullptr ? dwfl_addrmodule(dwfl_.get(), address) : nullptr;
    Dwarf_Addr bias = 0;
    Dwarf_Die *unit = module != nullptr ? find_unit(module, address, bias) : nullptr;
    if (unit == nullptr)
        return {around};
    Dwarf_Files *files = nullptr;
    dwarf_getsrcfiles(unit, &files, nullptr);
    for (Dwarf_Die &scope : scopes_at(unit, address - bias)) {
        if (dwarf_tag(&scope) != DW_TAG_inlined_subroutine)
            continue;
        const char *name = linkage_name(&scope);
        Symbol inlined = around;
        inlined.function = name != nullptr ? demangled(name) : "";
        inlined.offset = 0;
        chain.push_back(std::move(inlined));
        // What it is inlined into stands at the line of the call.
        set_source(around, files != nullptr
                               ? dwarf_filesrc(files, number_at(&scope, DW_AT_call_file), nullptr, nullptr)
                               : nullptr);
        around.line = static_cast<int>(number_at(&scope, DW_AT_call_line));
    }
    chain.push_back(std::move(around));
    return chain;
}

Symbols::Symbols(const std::string &maps, std::optional<pid_t> process)
    : modules_(std::make_unique<Modules>(maps, process)) {}

Symbols::~Symbols() = default;

const Symbol &Symbols::at(std::uint64_t address) const {
    return modules_->at(address);
}

std::vector<Symbol> Symbols::with_inlined(std::uint64_t address) const {
    return modules_->with_inlined(address);
}

std::string Symbols::section_at(std::uint64_t address) const {
    return modules_->section_at(address);
}

std::uint64_t Symbols::pointer_at(std::uint64_t word) const {
    return modules_->pointer_at(word);
}

bool Symbols::is_unwindable(std::uint64_t address) const {
    return modules_->is_unwindable(address);
}

std::string Symbols::name_at(std::uint64_t word) const {
    const std::string name = modules_->name_at(word);
    return name.empty() ? "" : demangled(name.c_str());
}

std::optional<Import> Symbols::import_at(std::uint64_t word, std::uint64_t at) const {
    return modules_->import_at(word, at);
}

} // namespace thrum
