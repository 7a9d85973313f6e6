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

std::string shown(const std::string &name) {
    const thrum::stat::JitName found = thrum::stat::jit_name(name);
    return found.function + "|" + found.file + "|" + std::to_string(found.line) +
           (found.is_runtimes ? "|own" : "");
}

// As node 20, Python 3.12 and OpenJDK 17 write them.
TEST(JitNames, AreThoseOfTheProgrammer) {
    EXPECT_EQ(shown("JS:*hotOuter /tmp/p/hot.js:2:18"), "hotOuter|hot.js|2");
    EXPECT_EQ(shown("JS:^get x /tmp/p/anon.js:1:173"), "get x|anon.js|1");
    EXPECT_EQ(shown("JS:~ /tmp/p/anon.js:1:29"), "(anonymous)|anon.js|1");
    EXPECT_EQ(shown("Eval:~ /tmp/p/anon.js:1:1"), "(anonymous)|anon.js|1");
    EXPECT_EQ(shown("LazyCompile:*f /tmp/a b/c.js:7:1"), "f /tmp/a|c.js|7")
        << "a blank in a path: as well as it can";
    EXPECT_EQ(shown("JS:^resolve node:path:1217:10"), "resolve|node:path|1217|own");
    EXPECT_EQ(shown("JS:~Module._load node:internal/modules/cjs/loader:966:24"),
              "Module._load|loader|966|own");
    EXPECT_EQ(shown("py::work:/srv/mut.py"), "work|mut.py|0");
    EXPECT_EQ(shown("void Sync.lambda$main$0(long)"), "Sync.lambda$main$0||0");
    EXPECT_EQ(shown("java.lang.Object java.util.HashMap.put(java.lang.Object, int)"),
              "java.util.HashMap.put||0");
    EXPECT_EQ(shown("void Sync.<init>()"), "Sync.<init>||0");
    for (const char *other :
         {"Interpreter", "monitorexit_nofpu Runtime1 stub", "BytecodeHandler:CallProperty.Wide", "JS:*f",
          "JS:*f x", "JS:*f /x.js:1:", "JS:", "py::", "py::work", "f(int)", "(int)", ")", "", "operator()",
          "Builtin:RegExpCapture1Getter", "a b(c)"})
        EXPECT_EQ(shown(other), std::string(other) + "||0");
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
