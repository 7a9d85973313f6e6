// SPDX-License-Identifier: Apache-2.0
//
// What a sweep says of runs that differ by chance (cli/stat/scaling.hpp, verdict_text.hpp): nothing.
#include <gtest/gtest.h>

#include <random>

#include "stat/facts.hpp"
#include "stat/names.hpp"
#include "stat/rules.hpp"
#include "stat/scaling.hpp"
#include "stat/sweep.hpp"

namespace {

using thrum::stat::Measured;
using thrum::stat::Outcome;
using thrum::stat::Report;
using thrum::stat::Runs;

// A sweep of two numbers of threads: `walls` has the times of each round. A free machine of two cores.
Report swept(const std::vector<std::pair<double, double>> &walls) {
    std::vector<Runs> runs(2);
    for (std::size_t i = 0; i < runs.size(); i++) {
        runs[i].launch.threads = static_cast<unsigned>(i + 1);
        for (const auto &[one, two] : walls) {
            Measured measured;
            measured.wall = i == 0 ? one : two;
            measured.user = one;
            measured.most_threads = 1;
            measured.load.seconds = measured.wall;
            measured.load.others = 0;
            runs[i].measured.push_back(measured);
        }
    }
    Report report;
    report.machine.processors = report.cores = 2;
    report.points = thrum::stat::points_of(runs);
    add_scaling(report);
    conclude(report, "");
    return report;
}

std::string outcome_of(const Report &report) {
    return thrum::stat::key_of(report.outcome);
}

TEST(StatVerdict, ShortRunsAreTooShortWhateverTheyShow) {
    for (const auto &[one, two] :
         {std::pair{0.001, 0.0015}, {0.0015, 0.0008}, {0.001, 0.001}, {0.012, 0.003}}) {
        const Report report = swept(std::vector(5, std::pair{one, two}));
        EXPECT_EQ(outcome_of(report), "too_short") << one << " " << two;
        ASSERT_EQ(report.findings.size(), 1U);
        EXPECT_EQ(report.findings.front().rule, "inconclusive");
        EXPECT_NE(report.findings.front().cause.find("too short"), std::string::npos);
        EXPECT_EQ(report.verdict.find("Too short to tell"), 0U) << report.verdict;
        EXPECT_EQ(report.scaling_text, "");
    }
}

TEST(StatVerdict, OneLongRunIsEnoughToTellAShortOne) {
    EXPECT_EQ(outcome_of(swept(std::vector(5, std::pair{0.004, 0.9}))), "slower");
}

TEST(StatVerdict, RunsThatDifferAmongThemselvesTellNoDifference) {
    const Report slower = swept({{1, 1.3}, {1.2, 1.1}, {0.9, 1.2}, {1, 1.2}, {1.1, 1}});
    EXPECT_EQ(outcome_of(slower), "no_difference") << slower.verdict;
    EXPECT_EQ(slower.verdict.find("No difference that these runs can show"), 0U) << slower.verdict;
    const Report faster = swept({{1.3, 1}, {1.1, 1.2}, {1.2, 0.9}, {1.2, 1}, {1, 1.1}});
    EXPECT_EQ(outcome_of(faster), "no_difference") << faster.verdict;
    const Report same = swept({{1, 1.6}, {1.6, 1}, {1, 1}, {1, 1}, {1, 1}});
    EXPECT_EQ(outcome_of(same), "no_difference") << same.verdict;
}

TEST(StatVerdict, RunsThatAgreeTellOne) {
    EXPECT_EQ(outcome_of(swept({{1, 1.3}, {1.1, 1.4}, {1, 1.32}, {1, 1.3}, {1, 1.28}})), "slower");
    EXPECT_EQ(outcome_of(swept({{1, 0.52}, {1.1, 0.55}, {1, 0.5}, {1, 0.53}, {1, 0.51}})), "scales");
    EXPECT_EQ(outcome_of(swept({{1, 1.01}, {1.02, 1}, {1, 1}, {1, 0.99}, {1, 1}})), "no_faster");
    EXPECT_EQ(outcome_of(swept({{14, 7.2}})), "scales") << "one round, and far from chance";
    EXPECT_EQ(outcome_of(swept({{14, 15.5}})), "no_difference") << "one round, which may be chance";
}

// Runs of one kind that differ tell all the same that threads do not help, where none of them was faster.
TEST(StatVerdict, RunsThatDifferTellThatNoneIsFaster) {
    const Report never = swept({{1, 1.3}, {1.1, 1.1}, {0.9, 1.2}, {1, 1.2}, {1, 1.05}, {1, 1}});
    EXPECT_EQ(outcome_of(never), "no_faster") << never.verdict;
    EXPECT_EQ(outcome_of(swept({{1, 1.3}, {1.2, 1.1}, {0.9, 1.2}, {1, 1.2}, {1.1, 1}, {1.2, 1}})),
              "no_difference");
}

TEST(StatVerdict, AWideIntervalIsNoHighConfidence) {
    const Report narrow = swept({{1, 0.52}, {1.1, 0.55}, {1, 0.5}, {1, 0.53}, {1, 0.51}});
    ASSERT_EQ(narrow.findings.size(), 1U);
    EXPECT_EQ(narrow.findings.front().confidence, thrum::stat::Confidence::kHigh);
    const Report wide = swept({{1.4, 0.6}, {1, 0.75}, {1.3, 0.6}, {1.2, 0.7}, {1, 0.6}});
    ASSERT_EQ(outcome_of(wide), "scales") << wide.verdict;
    EXPECT_LT(wide.points.back().speedup.low, 1.5);
    EXPECT_EQ(wide.findings.front().confidence, thrum::stat::Confidence::kMedium);
}

// The rounds drift together, as where a processor gets warm: their ratios do not.
TEST(StatVerdict, WhatChangesBothSidesOfARatioIsNoNoise) {
    const Report report = swept({{1, 1.2}, {1.4, 1.68}, {1.8, 2.16}, {2.2, 2.64}, {2.6, 3.12}});
    EXPECT_EQ(outcome_of(report), "slower") << report.verdict;
    const thrum::Interval &speedup = report.points.back().speedup;
    EXPECT_LT(speedup.high, 0.9);
    EXPECT_GT(speedup.low, 0.75);
}

// Programs that do the same with any number of threads, on a machine whose times vary by a quarter: 200 sweeps.
TEST(StatVerdict, ChanceHardlyEverMakesAVerdict) {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> time(0.1, 0.125);
    unsigned wrong = 0;
    for (int sweep = 0; sweep < 200; sweep++) {
        std::vector<std::pair<double, double>> walls;
        for (int round = 0; round < 5; round++)
            walls.emplace_back(time(random), time(random));
        const std::string outcome = outcome_of(swept(walls));
        wrong += outcome != "no_difference" && outcome != "no_faster" ? 1 : 0;
    }
    EXPECT_LE(wrong, 4U);
}

TEST(StatVerdict, EachSpeedupHasAnInterval) {
    const Report report = swept({{1, 0.52}, {1.1, 0.55}, {1, 0.5}, {1, 0.53}, {1, 0.51}});
    EXPECT_EQ(report.points.front().speedup.count, 0U) << "the first is what others are held against";
    const thrum::Interval &speedup = report.points.back().speedup;
    EXPECT_EQ(speedup.count, 5U);
    EXPECT_LT(speedup.low, speedup.median);
    EXPECT_GT(speedup.high, speedup.median);
    EXPECT_NE(text_of(report).find("interval"), std::string::npos);
    EXPECT_NE(json_of(report).find("\"speedup\": {\"median\": "), std::string::npos);
    EXPECT_NE(report.verdict.find("x to "), std::string::npos) << report.verdict;
}

} // namespace
