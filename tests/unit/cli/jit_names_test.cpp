// SPDX-License-Identifier: Apache-2.0
//
// cli/stat/jit_names.hpp: names from the maps that virtual machines write for perf(1).
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "stat/jit_names.hpp"

namespace {

using thrum::stat::JitNames;

std::string name_at(const JitNames &names, std::uint64_t address) {
    const auto found = names.at(address);
    return found ? found->function + "+" + std::to_string(found->offset) : "";
}

TEST(JitNames, AreByAddress) {
    const JitNames names(
        std::string("1000 10 first\n0x2000 20 second (file.js:3)\nrubbish\n3000 0 none\n4000 8\n"));
    EXPECT_EQ(name_at(names, 0xfff), "");
    EXPECT_EQ(name_at(names, 0x1000), "first+0");
    EXPECT_EQ(name_at(names, 0x100f), "first+15");
    EXPECT_EQ(name_at(names, 0x1010), "");
    EXPECT_EQ(name_at(names, 0x2001), "second (file.js:3)+1");
    EXPECT_EQ(name_at(names, 0x3000), "");
    EXPECT_EQ(name_at(names, 0x4000), "") << "a line without a name";
    EXPECT_EQ(name_at(JitNames(std::string()), 0x1000), "");
}

// Memory of code that was thrown away is used again.
TEST(JitNames, WhatComesLaterCounts) {
    const JitNames names(std::string("1000 100 old\n1010 10 young\n0ff0 18 young too\n"));
    EXPECT_EQ(name_at(names, 0x1008), "");
    EXPECT_EQ(name_at(names, 0x1007), "young too+23");
    EXPECT_EQ(name_at(names, 0x1012), "young+2");
    EXPECT_EQ(name_at(names, 0x1020), "") << "the old function is gone, whatever is left of its memory";
}

// Any user may write to /tmp.
TEST(JitNames, OfAProcess) {
    const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
    std::ofstream(path) << "1000 10 own\n";
    EXPECT_EQ(name_at(JitNames(getpid()), 0x1004), "own+4");
    std::remove(path.c_str());
    EXPECT_EQ(name_at(JitNames(getpid()), 0x1004), "");
    ASSERT_EQ(symlink("/etc/passwd", path.c_str()), 0);
    EXPECT_EQ(name_at(JitNames(getpid()), 0x1004), "");
    std::remove(path.c_str());
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    EXPECT_EQ(name_at(JitNames(getpid()), 0x1004), "") << "and does not wait for a writer";
    std::remove(path.c_str());
}

} // namespace
