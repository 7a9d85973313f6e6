// SPDX-License-Identifier: Apache-2.0
//
// The rules of shares of the work that are unequal, and of a quota of CPU time (cli/stat/rules/work.cpp and cpus.cpp), on reports
// that are made up: each with a healthy twin.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "stat_case.hpp"

namespace {

// --- shares -------------------------------------------------------------------------------------------

// Threads that the program made, which work for so long, from its beginning.
Case shares(const std::vector<double> &seconds) {
    Case made;
    double all = 0, longest = 0;
    for (const double one : seconds) {
        all += one;
        longest = std::max(longest, one);
    }
    made.point(1, all, all, 0).point(static_cast<unsigned>(seconds.size()), longest, all, 0);
    made.report.machine.processors = 8;
    made.report.process = 100;
    made.doing(Doing::kRunning, all);
    made.thread(0, longest, Doing::kJoinWait);
    made.report.threads.back().id = 100;
    for (const double one : seconds) {
        made.slowed(0, one, one);
        made.report.threads.back().id = 101;
    }
    return made;
}

TEST(StatRules, SharesThatAreUnequal) {
    Case made = shares({1.4, 0.3, 0.3, 0.2});
    const std::string rules = rules_of(made.concluded());
    ASSERT_EQ(rules, "unequal");
    EXPECT_EQ(made.report.findings.front().cause,
              "The work is divided unequally: one of 4 threads does 64 % of it");
    EXPECT_EQ(made.report.findings.front().evidence[0],
              "CPU time of the thread with the most 1.40 s, 2.5x the mean of the 4");
}

TEST(StatRules, SharesThatAreEqual) {
    EXPECT_EQ(rules_of(shares({0.5, 0.5, 0.5, 0.5}).concluded()), "scales");
    EXPECT_EQ(rules_of(shares({0.6, 0.5, 0.5, 0.4}).concluded()).find("unequal"), std::string::npos);
    Case first = shares({0.3, 0.3, 0.2}); // the program's own thread prepares the work
    Thread &main = first.report.threads.front();
    main.cpu = 1.4;
    main.end = 1.4;
    main.spans = {{0, 1.4, Doing::kRunning, SIZE_MAX, 1.4}};
    first.report.sampled_wall = first.report.points.back().wall.median = 1.4;
    EXPECT_EQ(rules_of(first.concluded()).find("unequal"), std::string::npos);
}

// --- quotas -------------------------------------------------------------------------------------------

TEST(StatRules, AQuotaThatStopsThreads) {
    const auto made = [](double throttled, double runnable) {
        Case one;
        one.point(4, 2, 2, 0).doing(Doing::kRunning, 2).doing(Doing::kRunnable, runnable);
        one.report.machine.processors = 1;
        one.report.quota = 1;
        one.report.throttled = throttled;
        return one;
    };
    Case stopped = made(1.8, 5);
    ASSERT_EQ(rules_of(stopped.concluded()), "quota");
    EXPECT_EQ(stopped.report.findings.front().cause,
              "The control group allows 1.00 CPUs: threads were stopped for 1.80 s in all");
    EXPECT_EQ(rules_of(made(0.05, 5).concluded()).find("quota"), std::string::npos);
    EXPECT_EQ(rules_of(made(1.8, 0).concluded()).find("quota"), std::string::npos) << "others used it up";
}

} // namespace
