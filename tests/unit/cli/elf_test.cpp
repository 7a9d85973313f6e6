// SPDX-License-Identifier: Apache-2.0
//
// cli/elf.hpp by itself: sound images are read right, damaged ones without harm.
#include "elf.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "place.hpp"

namespace {

namespace elf = thrum::elf;

// A file of these bytes that needs no place on a disk.
class Bytes {
  public:
    explicit Bytes(const std::string &bytes) : fd_(memfd_create("bytes", MFD_CLOEXEC)) {
        if (fd_ < 0 || write(fd_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
            throw std::runtime_error("cannot make a file in memory");
    }
    ~Bytes() { close(fd_); }
    Bytes(const Bytes &) = delete;
    Bytes &operator=(const Bytes &) = delete;
    int fd() const { return fd_; }

  private:
    int fd_;
};

TEST(Elf, AProgram) {
    const Bytes file(read_file(CLI_PROBE));
    const auto identity = elf::identify(file.fd());
    ASSERT_TRUE(identity);
    EXPECT_TRUE(identity->is_native());
    const auto image = elf::Image::from_file(file.fd());
    ASSERT_TRUE(image);
    EXPECT_NE(image->interpreter().find("/ld-linux"), std::string::npos);
    EXPECT_EQ(image->soname(), "");
    const std::vector<std::string> needed = image->needed();
    EXPECT_EQ(std::count(needed.begin(), needed.end(), "libc.so.6"), 1);
    EXPECT_FALSE(image->find_symbol("getenv")) << "wanted, not defined";
}

TEST(Elf, ALibrary) {
    const Bytes file(read_file(CLI_STANDIN));
    const auto image = elf::Image::from_file(file.fd());
    ASSERT_TRUE(image);
    EXPECT_EQ(image->interpreter(), "");
    EXPECT_EQ(image->soname(), "libcli-standin.so");
    const auto symbol = image->find_symbol("thrum_cache_counters");
    ASSERT_TRUE(symbol);
    EXPECT_EQ(symbol->size, 72u + 2 * 32 * 8);
    EXPECT_FALSE(image->find_symbol("thrum_cache_counter"));
    EXPECT_FALSE(image->find_symbol(""));
}

// Every symbol of a big table is found where the loader finds it.
TEST(Elf, AModuleInAProcess) {
    const auto *map = static_cast<const link_map *>(nullptr);
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(libc, nullptr);
    ASSERT_EQ(dlinfo(libc, RTLD_DI_LINKMAP, &map), 0);
    const auto image = elf::Image::from_process(getpid(), map->l_addr);
    ASSERT_TRUE(image);
    EXPECT_EQ(image->soname(), "libc.so.6");
    for (const char *name :
         {"environ", "stdout", "getenv", "pthread_create", "qsort", "mallopt", "fork", "sys_siglist0"}) {
        const void *expected = dlsym(libc, name);
        const auto symbol = image->find_symbol(name);
        EXPECT_EQ(symbol.has_value(), expected != nullptr) << name;
        if (symbol && expected != nullptr) {
            EXPECT_EQ(symbol->address, reinterpret_cast<std::uint64_t>(expected)) << name;
        }
    }
}

TEST(Elf, NotElf) {
    for (const std::string &text :
         {std::string(), std::string("\x7f"), std::string("#!/bin/sh\n"), std::string(4096, '\0')}) {
        const Bytes file(text);
        EXPECT_FALSE(elf::identify(file.fd()));
        EXPECT_FALSE(elf::Image::from_file(file.fd()));
    }
}

// Reads whatever there is to read; the value does not matter.
std::size_t read_everything(int fd) {
    std::size_t seen = elf::identify(fd) ? 1 : 0;
    if (const auto image = elf::Image::from_file(fd)) {
        seen += image->interpreter().size() + image->soname().size() + image->needed().size();
        seen += image->find_symbol("thrum_cache_counters") ? 1 : 0;
    }
    return seen;
}

TEST(Elf, CutOffAnywhere) {
    const std::string whole = read_file(CLI_STANDIN);
    const std::size_t everything = read_everything(Bytes(whole).fd());
    for (std::size_t length = 0; length < whole.size(); length += length < 2048 ? 7 : 509)
        ASSERT_LE(read_everything(Bytes(whole.substr(0, length)).fd()), everything) << length;
}

// Fixed seed: the same damage in every run. The bounds in elf.cpp are what keeps this short.
TEST(Elf, DamagedAnywhere) {
    const std::string whole = read_file(CLI_STANDIN);
    const std::size_t hot = std::min<std::size_t>(whole.size(), 4096); // headers, hash table, symbols, names
    std::mt19937 random(1);
    std::size_t unhurt = 0;
    for (int round = 0; round < 3000; round++) {
        std::string damaged = whole;
        for (int i = 0; i < 4; i++)
            damaged[random() % hot] = static_cast<char>(random());
        unhurt += read_everything(Bytes(damaged).fd()) == read_everything(Bytes(whole).fd()) ? 1 : 0;
    }
    EXPECT_GT(unhurt, 0u);
    EXPECT_LT(unhurt, 3000u) << "no damage was noticed: is anything read at all?";
}

} // namespace
