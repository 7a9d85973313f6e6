// SPDX-License-Identifier: Apache-2.0
//
// cli/stat/instructions.hpp: calls and entries of the procedure linkage table, of both architectures, as gcc and binutils
// write them. Nothing is executed, so each can be read on the other.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "place.hpp"
#include "stat/instructions.hpp"

namespace {

using thrum::Mapping;
using thrum::stat::Code;

constexpr std::uint64_t kBase = 0x7f0000000000; // where the file below is mapped

// A file of instructions at the places that they are given.
class Program {
  public:
    explicit Program(Code::Set set) : bytes_(0x3000, '\0'), set_(set) {}
    Program &bytes(std::uint64_t at, std::initializer_list<unsigned char> bytes) {
        for (const unsigned char byte : bytes)
            bytes_[at++] = static_cast<char>(byte);
        return *this;
    }
    Program &words(std::uint64_t at, std::initializer_list<std::uint32_t> words) {
        for (const std::uint32_t word : words) {
            std::memcpy(&bytes_[at], &word, sizeof word);
            at += sizeof word;
        }
        return *this;
    }
    // Distances are from the file's beginning, as its linker counts them.
    bool is_behind_call(std::uint64_t at, std::uint64_t &target) {
        load();
        const bool is = Code(mappings_, set_).is_behind_call(kBase + at, target);
        target -= target != 0 ? kBase : 0;
        return is;
    }
    std::uint64_t word_of_call(std::uint64_t at) {
        load();
        const std::uint64_t word = Code(mappings_, set_).word_of_call(kBase + at);
        return word != 0 ? word - kBase : 0;
    }

    // As if the file had been replaced since.
    Program &replaced() {
        is_another_ = true;
        return *this;
    }

  private:
    void load() {
        const std::string path = place().write("stat-instructions", bytes_, 0644);
        mappings_ = thrum::mappings_of("7f0000000000-7f0000003000 r-xp 00000000 00:00 0    " + path + "\n");
        struct stat file {};
        ASSERT_EQ(stat(path.c_str(), &file), 0);
        mappings_[0].device = file.st_dev;
        mappings_[0].inode = file.st_ino + (is_another_ ? 1 : 0);
    }

    std::string bytes_;
    Code::Set set_;
    bool is_another_ = false;
    std::vector<Mapping> mappings_;
};

// main: call random@plt at 0x113a, call *%rax at 0x1149; the entry jumps through the word at 0x4000.
Program x86_64() {
    return Program(Code::Set::kX86_64)
        .bytes(0x1030, {0xff, 0x25, 0xca, 0x2f, 0x00, 0x00})
        .bytes(0x1139, {0x53, 0xe8, 0xf1, 0xfe, 0xff, 0xff, 0x48, 0x89, 0xc3, 0x48, 0x8b,
                        0x05, 0xcf, 0x2e, 0x00, 0x00, 0xff, 0xd0, 0x01, 0xd8, 0x5b, 0xc3});
}

TEST(Instructions, CallsOfX8664) {
    Program program = x86_64();
    std::uint64_t target = 0;
    EXPECT_TRUE(program.is_behind_call(0x113f, target));
    EXPECT_EQ(target, 0x1030U);
    EXPECT_TRUE(program.is_behind_call(0x114b, target)) << "of a register";
    EXPECT_EQ(target, 0U);
    for (const std::uint64_t at : {0x113aU, 0x1142U, 0x114eU})
        EXPECT_FALSE(program.is_behind_call(at, target)) << at;
    EXPECT_EQ(program.word_of_call(0x113f), 0x4000U);
    EXPECT_EQ(program.word_of_call(0x114b), 0U);
}

TEST(Instructions, OtherEntriesOfX8664) {
    Program program(Code::Set::kX86_64);
    program.bytes(0x1040,
                  {0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xb5, 0x2f, 0x00, 0x00}); // endbr64; bnd jmp
    program.bytes(0x1200, {0xe8, 0x3b, 0xfe, 0xff, 0xff});                             // call 0x1040
    program.bytes(0x1300, {0xff, 0x15, 0xfa, 0x2c, 0x00, 0x00});                       // call *(%rip)
    program.bytes(0x1400, {0x41, 0xff, 0x94, 0x24, 0x88, 0x00, 0x00, 0x00});           // call *0x88(%r12)
    program.bytes(0x1500, {0xe8, 0x00, 0x00, 0x00, 0x70}); // to where there is no code
    std::uint64_t target = 0;
    EXPECT_EQ(program.word_of_call(0x1205), 0x4000U);
    EXPECT_EQ(program.word_of_call(0x1306), 0x4000U) << "without an entry";
    EXPECT_TRUE(program.is_behind_call(0x1306, target));
    EXPECT_TRUE(program.is_behind_call(0x1408, target));
    EXPECT_FALSE(program.is_behind_call(0x1505, target));
}

// main: bl random@plt at 0x7a0, blr x0 at 0x7b0; the entry goes through the word at 0x20010.
Program aarch64() {
    return Program(Code::Set::kAarch64)
        .words(0x630, {0x90000110, 0xf9400a11, 0x91004210, 0xd61f0220})
        .words(0x794, {0xa9be7bfd, 0x910003fd, 0xf9000bf3, 0x97ffffa4, 0xaa0003f3, 0x90000100, 0xf9401c00,
                       0xd63f0000, 0x0b000260, 0xf9400bf3, 0xa8c27bfd, 0xd65f03c0});
}

TEST(Instructions, CallsOfAarch64) {
    Program program = aarch64();
    std::uint64_t target = 0;
    EXPECT_TRUE(program.is_behind_call(0x7a4, target));
    EXPECT_EQ(target, 0x630U);
    EXPECT_TRUE(program.is_behind_call(0x7b4, target)) << "of a register";
    EXPECT_EQ(target, 0U);
    for (const std::uint64_t at : {0x798U, 0x7a0U, 0x7a8U, 0x7b0U, 0x7c4U, 0x640U})
        EXPECT_FALSE(program.is_behind_call(at, target)) << at;
    EXPECT_EQ(program.word_of_call(0x7a4), 0x20010U);
    EXPECT_EQ(program.word_of_call(0x7b4), 0U);
}

TEST(Instructions, OtherEntriesOfAarch64) {
    Program program(Code::Set::kAarch64);
    program.words(0x700,
                  {0xd503245f, 0x90000110, 0xf947fe11}); // bti c; adrp x16, 20000; ldr x17, [x16, 4088]
    program.words(0x800, {0x97ffffc0});                  // bl 0x700
    program.words(0x2f00, {0xf0ffff70, 0xf9400611});     // adrp x16, of 17 pages before; ldr x17, [x16, 8]
    program.words(0x900, {0x94000980});                  // bl 0x2f00
    program.words(0xa00, {0x94000040, 0xd503201f});      // bl 0xb00, which is no entry
    program.words(0xb00, {0xa9be7bfd, 0xf9400a11});
    EXPECT_EQ(program.word_of_call(0x804), 0x20ff8U);
    EXPECT_EQ(program.word_of_call(0x904), std::uint64_t{0x2000} - 0x11000 + 8) << "backwards";
    EXPECT_EQ(program.word_of_call(0xa04), 0U);
    EXPECT_EQ(program.word_of_call(0xa08), 0U) << "no call";
}

TEST(Instructions, WhereThereIsNoCode) {
    for (Program program : {x86_64(), aarch64()}) {
        std::uint64_t target = 0;
        EXPECT_FALSE(program.is_behind_call(0x100000, target));
        EXPECT_FALSE(program.is_behind_call(0, target));
        EXPECT_EQ(program.word_of_call(0x2fff), 0U);
    }
}

TEST(Instructions, OfAnotherFileWithThatNameNothingIsRead) {
    const auto program = [] {
        Program made(Code::Set::kX86_64);
        return made.bytes(0x1000, {0xff, 0xd0}); // call *%rax
    };
    std::uint64_t target = 0;
    EXPECT_TRUE(program().is_behind_call(0x1002, target));
    EXPECT_FALSE(program().replaced().is_behind_call(0x1002, target));
}

} // namespace
