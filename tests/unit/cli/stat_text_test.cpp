// SPDX-License-Identifier: Apache-2.0
//
// The text of a report (cli/stat/report_text.cpp).
#include <gtest/gtest.h>

#include <sstream>

#include "stat/rules.hpp"
#include "stat_case.hpp"

namespace {

TEST(StatText, TheFormOfAReport) {
    Case made = random_case();
    made.report.switch_cost = 3.1e-6;
    made.report.scaling_text = "Retrograde: best at 1 thread (no scaling model fitted).";
    made.report.threads_created = made.report.threads_joined = 4;
    made.report.threads_counted = made.report.creations_counted = true;
    made.concluded();
    const std::string text = text_of(made.report);
    for (const char *part :
         {"VERDICT  Threads make this program SLOWER: 4 threads take 3.4x the time of 1\n         (3.1x to "
          "3.7x).\n",
          "CAUSE    Hidden lock in libc: random()                          confidence: high\n",
          "FIX      Use random_r() with per-thread state.\n",
          " threads     wall   speedup    interval      cpu   parallel\n",
          "       4   1.08 s     0.30x               1.83 s       1.69  ###\n",
          " Retrograde: best at 1 thread",
          "WHERE waiting happened (109 samples at 100 Hz; join and idle waits excluded)\n",
          "   99%  random <- draw (prog.c:21) <- has_dup <- worker\n",
          "        lock: libc.so.6 .data (static lock inside libc)\n",
          "LOST     1.51 s CPU above 1 thread; 44 % of CPU is in the kernel;\n",
          "788 voluntary switches x 3.1 us (measured) = 2.4 ms: most waits spun\n",
          "ALSO     threads: 4 created, 4 joined (ok)    runnable/cores: 1.4 (ok)\n",
          "NOISE    CPU pressure from others: low        next: thrum stat --exact | --html\n"})
        EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(StatText, NamesThatAreTooLongForTheirColumn) {
    Case made = random_case();
    made.burns({library("memmove_avx512_unaligned_erms"), library("qsort"), own("count_shared", 39)}, 0.9,
               0.8);
    made.burns({library(std::string(70, 'y').c_str()), own("count_shared", 40)}, 0.85, 0.8);
    const std::string text = text_of(made.concluded());
    EXPECT_NE(text.find("\n  memmove_avx512_unaligned_erms <- count_shared               80%"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("\n  " + std::string(52, 'y') + " "), std::string::npos) << text;
}

// C++ has long names: where in the program it is comes first.
TEST(StatText, ThePlaceInTheProgramIsAlwaysShown) {
    Case made = random_case();
    Frame guard = own("std::lock_guard<std::mutex>::lock_guard", 0);
    guard.file.clear();
    made.report.waits.front().stack = {
        guard, own(("company::" + std::string(60, 'x') + "::insert").c_str(), 11), own("main", 20)};
    const std::string text = text_of(made.concluded());
    EXPECT_NE(text.find("xx::insert (prog.c:11)\n"), std::string::npos) << text;
    for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
        EXPECT_LE(end - begin, 80U) << text.substr(begin, end - begin);
}

TEST(StatText, AProcessThatRanAlready) {
    Case made = random_case();
    made.report.is_attached = true;
    made.report.sampled_threads = 4;
    made.report.threads_created = 0;
    const std::string text = text_of(made.concluded());
    EXPECT_NE(text.find("ALSO     4 threads at once at most, 0 new"), std::string::npos) << text;
    EXPECT_EQ(text.find("--exact"), std::string::npos) << "it cannot be had";
}

TEST(StatText, WhatIsCountedWhereThatIsAllowed) {
    Case made = random_case();
    made.report.counters_one = counts(43.4e9, 29.7e9, 0);
    made.report.counters = counts(248.9e9, 488e9, 0);
    made.report.counters->cache_misses = 248.9e7;
    made.report.switched = thrum::stat::Switched{1.83, 0.21, 1.05, 12, 788};
    const std::string text = text_of(made.concluded());
    for (const char *part :
         {"         instructions per cycle: 1.46 with 1 thread, 0.51 with 4\n",
          "         cache misses per 1000 instructions: 0.00 with 1 thread, 10.00 with 4\n",
          "counted: 1.8 s on CPUs, 210 ms preempted (12 times), 1.1 s asleep (788\n"})
        EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    made.report.exact_wall = 0.5;
    EXPECT_NE(text_of(made.report).find("counted, in a run of 500 ms: 1.8 s on CPUs"), std::string::npos);
    made.report.exact = made.report.exact_estimated = true;
    EXPECT_NE(text_of(made.report).find("WHERE waiting happened (counted, places of some; join and idle"),
              std::string::npos);
    Case without = random_case();
    EXPECT_EQ(text_of(without.concluded()).find("instructions per cycle"), std::string::npos);
    EXPECT_EQ(text_of(without.report).find("counted:"), std::string::npos);
}

TEST(StatText, NoLineIsTooLong) {
    Case made = random_case();
    made.report.waits.front().stack[2].function = std::string(300, 'x');
    made.report.warnings = {
        "a warning that is long and longer, as warnings are, until there is no room left on its line"};
    made.concluded();
    std::istringstream lines(text_of(made.report));
    for (std::string line; std::getline(lines, line);)
        EXPECT_TRUE(line.size() <= 80 || line.find("xxx") != std::string::npos) << line;
}

} // namespace
