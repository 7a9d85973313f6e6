// SPDX-License-Identifier: Apache-2.0
//
// Reading ELF images: what kind of program a file is, which libraries it asks for, and at which
// address a dynamic symbol stands. An image is read by virtual address, so the same code serves a
// file (program.cpp: may LD_PRELOAD reach it?) and a module that is mapped into another process
// (counters.cpp: where are its counters?). Only what the loader itself would use is looked at: program
// headers and the dynamic section; section headers may be stripped.
//
// What is read comes from others and may be damaged: every read may fail, every table is bounded.
#pragma once

#include <elf.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace thrum::elf {

// This machine's e_machine, and a word for one ("x86-64", "machine 42").
std::uint16_t native_machine();
std::string machine_name(std::uint16_t machine);

// The first bytes of a file, as far as they are the same in 32-bit and 64-bit ELF.
struct Identity {
    bool is_64_bit;
    bool is_little_endian;
    std::uint16_t machine;

    bool is_native() const;
};

// Nothing where the file is no ELF file.
std::optional<Identity> identify(int fd);

// An ELF image of this machine's kind.
class Image {
  public:
    // Reads exactly `bytes` bytes at a virtual address of the image; false where that is impossible.
    using Reader = std::function<bool(std::uint64_t address, void *to, std::size_t bytes)>;

    // Nothing where the file or memory does not hold a sound ELF header and program headers.
    // The descriptor must stay open as long as the image is used.
    static std::optional<Image> from_file(int fd);
    // `start`: where offset 0 of the module's file is mapped.
    static std::optional<Image> from_process(pid_t pid, std::uint64_t start);

    // PT_INTERP: the loader's path; empty in a static program and in the loader itself.
    std::string interpreter() const;
    // DT_SONAME, or empty.
    std::string soname() const;
    // DT_NEEDED.
    std::vector<std::string> needed() const;

    struct Symbol {
        std::uint64_t address; // in the process for from_process(), as linked for from_file()
        std::uint64_t size;
    };
    // A symbol that this image defines, by way of its DT_GNU_HASH table.
    std::optional<Symbol> find_symbol(const std::string &name) const;
    // Those that it wants of others and whose names begin so. The GNU hash table has the defined ones, which come last.
    std::vector<std::string> wanted_symbols(const std::string &prefix) const;

  private:
    Image(Reader read, std::vector<Elf64_Phdr> headers, std::uint64_t bias);
    void load_dynamic();
    std::optional<std::uint64_t> dynamic_address(std::int64_t tag) const;
    std::optional<std::uint64_t> dynamic_value(std::int64_t tag) const;
    std::string dynamic_string(std::uint64_t offset) const;
    std::string string_at(std::uint64_t address) const;

    Reader read_;
    std::vector<Elf64_Phdr> headers_;
    std::uint64_t bias_; // address in memory minus address as linked; 0 for a file
    std::vector<Elf64_Dyn> dynamic_;
};

// True where process `pid` let us read all `bytes` bytes at `address`; otherwise errno says why not.
bool read_process(pid_t pid, std::uint64_t address, void *to, std::size_t bytes);

} // namespace thrum::elf
