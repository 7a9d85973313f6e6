// SPDX-License-Identifier: Apache-2.0
//
// Names for addresses of a process: from the text of its /proc/PID/maps and the files that stand there, with their
// debugging information where there is any (elfutils). The process may have ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace thrum {

// What is known of an address; strings are empty, and numbers 0, where it is not.
struct Symbol {
    std::string function; // demangled, with its parameters
    std::string file;     // of the source, its last component
    int line = 0;
    std::string module;       // the program or library, its last component
    std::uint64_t offset = 0; // from the function's beginning; without a function, from the module's
    std::string source, path; // of file and module, whole
    std::uint64_t linked = 0; // the address, as the module was linked
    std::uint64_t begin = 0;  // likewise where a function without a name begins; 0: not known
};

// A function by the name that its caller knows.
struct Import {
    std::string function; // demangled, with its parameters
    bool is_same = false; // it is the function that was asked about, which may have other names
};

// The function alone, without the types of its result and parameters and of what a template was made from. Of the functions
// that <thrum/thrum.hpp> starts callables with, the callable; where that is a pointer to a function, its type. Empty without a function.
std::string short_name(const Symbol &symbol);

// Is this name the type of a pointer or reference to a function, or to a member function, or std::function?
bool is_holder_of_function(const std::string &name);

// "function (file:line)", "function+0x1c in module", "module+0x1234", or "0x7f..." where it lies nowhere.
std::string describe(const Symbol &symbol, std::uint64_t address);

class Symbols {
  public:
    // `maps`: the text of /proc/PID/maps. `process`: only by the very files that it has mapped, 0 where it has ended;
    // nothing: by those that stand there by now.
    explicit Symbols(const std::string &maps, std::optional<pid_t> process = std::nullopt);
    ~Symbols();
    Symbols(const Symbols &) = delete;
    Symbols &operator=(const Symbols &) = delete;

    // Where an instruction is: of a return address, one less. Asked twice, it is looked up once.
    const Symbol &at(std::uint64_t address) const;

    // Before it the functions that are inlined there, innermost first, as far as debugging information tells.
    std::vector<Symbol> with_inlined(std::uint64_t address) const;

    // ".data", ".bss": where in its module an address is; empty where that is not known.
    std::string section_at(std::uint64_t address) const;

    // Of a function that is called through a `word` of the dynamic linker's, as the caller's file names it; `at` is in the
    // function that was come to. Nothing where the file that this is in defines none of that name.
    std::optional<Import> import_at(std::uint64_t word, std::uint64_t at) const;

    // The address that such a word holds where its own file fills it in: of a function of that file; 0: none.
    std::uint64_t pointer_at(std::uint64_t word) const;

    // Does call-frame information tell how to unwind a function?
    bool is_unwindable(std::uint64_t address) const;

    // The function that such a word stands for, demangled with its parameters; empty where it is none.
    std::string name_at(std::uint64_t word) const;

  private:
    class Modules;
    std::unique_ptr<Modules> modules_;
};

} // namespace thrum
