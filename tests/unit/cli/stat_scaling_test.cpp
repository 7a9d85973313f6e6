// SPDX-License-Identifier: Apache-2.0
//
// cli/stat/scaling.hpp: laws that are found again in points which follow them, and none where there is none to be found.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "stat/rules.hpp"
#include "stat/scaling.hpp"
#include "stat/sweep.hpp"

namespace {

using thrum::stat::Point;
using thrum::stat::Report;
using thrum::stat::Scaling;
using thrum::stat::Speedup;

std::vector<Speedup> by_law(double contention, double coherency, const std::vector<double> &threads) {
    std::vector<Speedup> points;
    for (const double n : threads)
        points.push_back({n, n / (1 + contention * (n - 1) + coherency * n * (n - 1))});
    return points;
}

Report report_of(const std::vector<std::pair<unsigned, double>> &walls, unsigned processors) {
    Report report;
    report.machine.processors = processors;
    for (const auto &[threads, wall] : walls) {
        Point point;
        point.threads = threads;
        point.wall = {wall, wall, wall, 1, 3};
        report.points.push_back(point);
    }
    add_scaling(report);
    return report;
}

TEST(StatScaling, TheLawIsFoundAgain) {
    for (const auto &[contention, coherency] :
         {std::pair{0.0, 0.0}, {0.1, 0.0}, {0.05, 0.002}, {0.0, 0.01}, {0.9, 0.0}}) {
        const auto scaling = thrum::stat::fit_universal_law(by_law(contention, coherency, {1, 2, 4, 8, 16}));
        ASSERT_TRUE(scaling);
        EXPECT_NEAR(scaling->contention, contention, 1e-9);
        EXPECT_NEAR(scaling->coherency, coherency, 1e-9);
        EXPECT_NEAR(scaling->residual, 0, 1e-9);
    }
}

TEST(StatScaling, CoefficientsAreNeverNegative) {
    // Faster than ideal, as where each thread's part fits into a cache.
    for (const std::vector<Speedup> &points : {std::vector<Speedup>{{1, 1}, {2, 2.05}, {3, 3.1}, {4, 4.1}},
                                               {{1, 1}, {2, 1.9}, {4, 3.9}, {8, 7.9}},
                                               {{1, 1}, {2, 1.5}, {4, 2.6}, {8, 5.0}}}) {
        const auto scaling = thrum::stat::fit_universal_law(points);
        if (scaling) {
            EXPECT_GE(scaling->contention, 0);
            EXPECT_LE(scaling->contention, 1);
            EXPECT_GE(scaling->coherency, 0);
            EXPECT_TRUE(std::isfinite(scaling->residual));
        }
    }
}

TEST(StatScaling, TheBestNumberIsToldWithinWhatWasMeasured) {
    const auto peak = thrum::stat::fit_universal_law(by_law(0.0, 0.04, {1, 2, 4, 8}));
    ASSERT_TRUE(peak);
    EXPECT_EQ(peak->best_threads, 5);
    const auto beyond = thrum::stat::fit_universal_law(by_law(0.0, 0.001, {1, 2, 4, 8}));
    ASSERT_TRUE(beyond);
    EXPECT_EQ(beyond->best_threads, 0);
}

TEST(StatScaling, NothingIsFittedToWhatFollowsNoLaw) {
    EXPECT_FALSE(thrum::stat::fit_universal_law(by_law(0.1, 0, {1, 2, 4})));
    EXPECT_FALSE(thrum::stat::fit_universal_law({{1, 1}, {2, 0.3}, {3, 2.5}, {4, 0.9}}));
    EXPECT_FALSE(thrum::stat::fit_universal_law({{1, 1}, {2, 0.3}, {3, 0.2}, {4, 0.15}}));
}

TEST(StatScaling, FourPointsUpToTheCores) {
    const std::vector<std::pair<unsigned, double>> walls = {{1, 1}, {2, 0.55}, {4, 0.325}, {8, 0.2125}};
    const Report enough = report_of(walls, 8);
    ASSERT_TRUE(enough.scaling);
    EXPECT_NEAR(enough.scaling->contention, 0.1, 1e-6);
    EXPECT_NE(enough.scaling_text.find("Amdahl's law: 10 %"), std::string::npos) << enough.scaling_text;
    const Report few = report_of(walls, 4);
    EXPECT_FALSE(few.scaling);
    EXPECT_NE(few.scaling_text.find("4 points"), std::string::npos) << few.scaling_text;
}

TEST(StatScaling, Retrograde) {
    const Report report = report_of({{1, 0.32}, {2, 0.48}, {3, 0.7}, {4, 1.08}}, 4);
    EXPECT_FALSE(report.scaling);
    EXPECT_EQ(report.scaling_text, "Retrograde: best at 1 thread (no scaling model fitted).");
}

TEST(StatScaling, OneThreadIsTheBestByChance) {
    Report report = report_of({{1, 1.04}, {2, 1.1}, {4, 1.05}}, 4);
    for (thrum::stat::Point &point : report.points)
        point.wall.low = point.wall.median - 0.1, point.wall.high = point.wall.median + 0.1;
    add_scaling(report);
    EXPECT_EQ(report.scaling_text, "No number of threads is faster than 1 (no scaling model fitted).");
}

// One run of each shows no difference of a few percent.
TEST(StatScaling, WhatIsWithinTheNoiseIsNotRetrograde) {
    const Report report = report_of({{1, 0.712}, {2, 0.714}}, 2);
    EXPECT_EQ(report.scaling_text, "No number of threads is faster than 1 (no scaling model fitted).");
}

TEST(StatScaling, NothingToCompareWith) {
    EXPECT_EQ(report_of({{4, 1}}, 4).scaling_text, "");
    EXPECT_FALSE(report_of({{2, 1}, {3, 0.8}, {4, 0.7}, {5, 0.6}, {6, 0.5}}, 8).scaling);
}

TEST(StatScaling, HyperThreadsAreNoCores) {
    Report report;
    report.machine.processors = 8;
    EXPECT_EQ(thrum::stat::ideal_speedup(report, 16), 8);
    report.cores = 4;
    EXPECT_EQ(thrum::stat::ideal_speedup(report, 16), 4);
    EXPECT_EQ(thrum::stat::ideal_speedup(report, 2), 2);
}

// --- from times to a finding ----------------------------------------------------------------------------------

// A program of which one function takes all CPU time, by speedups from one thread on, as examination.cpp hands it on: all of
// its threads run all the time. (A machine with four cores can measure it: tests/programs/stat/coherency.c.)
Report concluded(const std::vector<Speedup> &speedups, unsigned cores) {
    Report report;
    report.command = {"./prog", "{}"};
    report.machine.processors = report.cores = cores;
    report.rate = 100;
    for (const Speedup &at : speedups) {
        Point point;
        point.threads = static_cast<unsigned>(at.threads);
        point.most_threads = point.threads + 1;
        point.runs = 5;
        const double wall = 1 / at.speedup;
        point.wall = {wall, 0.99 * wall, 1.01 * wall, 0.94, point.runs};
        point.user = wall * std::min(at.threads, static_cast<double>(cores));
        point.load.seconds = 5 * wall;
        point.load.others = 0.01;
        report.points.push_back(point);
    }
    report.sampled_threads = report.points.back().threads;
    report.sampled_wall = report.points.back().wall.median;
    report.doing[static_cast<int>(thrum::stat::Doing::kRunning)] = report.points.back().user;
    thrum::stat::Site site;
    site.doing = thrum::stat::Doing::kRunning;
    site.stack = {{"merge", "prog.c", 12, "prog", 0x1200, true}};
    site.samples = 100;
    site.share = 1;
    report.burns = report.burns_one = {site};
    report.profile_source = "perf event";
    add_scaling(report);
    conclude(report, "");
    return report;
}

std::string rules_of(const Report &report) {
    std::string rules;
    for (const thrum::stat::Finding &finding : report.findings)
        rules += (rules.empty() ? "" : " ") + finding.rule;
    return rules;
}

bool has_coherency(const Report &report) {
    return rules_of(report).find("coherency") != std::string::npos;
}

const std::vector<double> kToFour = {1, 2, 3, 4};

// Two threads gain, and of four each slows all others down.
TEST(StatScaling, LossesByCoherencyAreFound) {
    const Report report = concluded(by_law(0.02, 0.15, kToFour), 4);
    ASSERT_TRUE(report.scaling);
    EXPECT_NEAR(report.scaling->coherency, 0.15, 1e-6);
    EXPECT_EQ(report.scaling->best_threads, 2);
    ASSERT_FALSE(report.findings.empty());
    const thrum::stat::Finding &found = report.findings.front();
    EXPECT_EQ(found.rule, "coherency") << rules_of(report);
    EXPECT_EQ(found.confidence, thrum::stat::Confidence::kMedium) << "CPU time has grown as well";
    EXPECT_EQ(found.function, "merge");
    EXPECT_EQ(found.line, 12);
    EXPECT_EQ(report.scaling_text.find("Universal Scalability Law: contention 2.0 %, coherency 15 %"), 0U)
        << report.scaling_text;
    EXPECT_NE(std::find(found.evidence.begin(), found.evidence.end(), report.scaling_text),
              found.evidence.end());
}

TEST(StatScaling, CoherencyTakesFourPointsUpToTheCores) {
    const Report three = concluded(by_law(0.02, 0.15, {1, 2, 4}), 4);
    EXPECT_FALSE(three.scaling);
    EXPECT_FALSE(has_coherency(three)) << rules_of(three);
    EXPECT_NE(three.scaling_text.find("4 points"), std::string::npos) << three.scaling_text;
    const Report two_cores = concluded(by_law(0.02, 0.15, kToFour), 2);
    EXPECT_FALSE(two_cores.scaling);
    EXPECT_FALSE(has_coherency(two_cores)) << rules_of(two_cores);
}

// More than all of the work would be sequential, by a fit that is not bad.
TEST(StatScaling, ALawThatCannotBeIsRefused) {
    const std::vector<Speedup> points = {{1, 1}, {2, 0.9}, {3, 0.95}, {4, 1.02}};
    const Report report = concluded(points, 4);
    EXPECT_FALSE(report.scaling) << report.scaling->contention << " " << report.scaling->residual;
    EXPECT_FALSE(has_coherency(report)) << rules_of(report);
    EXPECT_NE(report.scaling_text.find("neither Amdahl's law nor"), std::string::npos) << report.scaling_text;
}

// By least squares coherency would be below 0: each thread gains more than the one before it.
TEST(StatScaling, NoCoherencyWhereItWouldBeNegative) {
    for (const std::vector<Speedup> &points : {std::vector<Speedup>{{1, 1}, {2, 2.05}, {3, 3.1}, {4, 4.1}},
                                               {{1, 1}, {2, 1.4}, {3, 1.95}, {4, 2.7}}}) {
        const Report report = concluded(points, 4);
        EXPECT_FALSE(has_coherency(report)) << rules_of(report);
        EXPECT_TRUE(!report.scaling || report.scaling->coherency == 0) << report.scaling->coherency;
    }
}

TEST(StatScaling, LittleCoherencyIsNotBlamed) {
    const Report report = concluded(by_law(0.1, 0.005, kToFour), 4);
    ASSERT_TRUE(report.scaling);
    EXPECT_NEAR(report.scaling->coherency, 0.005, 1e-6);
    EXPECT_FALSE(has_coherency(report)) << rules_of(report);
}

// --- numbers of threads ---------------------------------------------------------------------------------------

TEST(StatSweep, Lists) {
    using Numbers = std::vector<unsigned>;
    EXPECT_EQ(thrum::stat::parse_sweep("1,2,4"), (Numbers{1, 2, 4}));
    EXPECT_EQ(thrum::stat::parse_sweep("4,1,4,2"), (Numbers{1, 2, 4}));
    EXPECT_EQ(thrum::stat::parse_sweep("1-3,8"), (Numbers{1, 2, 3, 8}));
    EXPECT_EQ(thrum::stat::parse_sweep("7"), (Numbers{7}));
    for (const char *wrong :
         {"", ",", "1,", ",1", "1,,2", "0", "x", "-1", "4-1", "1-", "1.5", "1 2", "100001", "1-100"})
        EXPECT_ANY_THROW(thrum::stat::parse_sweep(wrong)) << wrong;
}

TEST(StatSweep, TheDefaultGoesUpToAllProcessors) {
    using Numbers = std::vector<unsigned>;
    EXPECT_EQ(thrum::stat::default_sweep(1), (Numbers{1}));
    EXPECT_EQ(thrum::stat::default_sweep(3), (Numbers{1, 2, 3}));
    EXPECT_EQ(thrum::stat::default_sweep(6), (Numbers{1, 2, 4, 6}));
    EXPECT_EQ(thrum::stat::default_sweep(16), (Numbers{1, 2, 4, 8, 16}));
}

TEST(StatSweep, TheProgramIsToldInEachWay) {
    thrum::stat::Launch launch;
    launch.words = {"./{}", "-t{}", "x={},{}", "plain"};
    launch.environment = {"A=1", "OMP_NUM_THREADS=9"};
    thrum::stat::Telling telling;
    telling.braces = true;
    telling.variable = "OMP_NUM_THREADS";
    telling.by_affinity = true;
    const thrum::stat::Launch told = with_threads(launch, telling, 12);
    EXPECT_EQ(told.words, (std::vector<std::string>{"./{}", "-t12", "x=12,12", "plain"}));
    EXPECT_EQ(told.environment, (std::vector<std::string>{"A=1", "OMP_NUM_THREADS=12"}));
    EXPECT_EQ(told.processors, 12U);
    EXPECT_EQ(told.threads, 12U);
}

TEST(StatSweep, APointIsMadeOfMedians) {
    thrum::stat::Runs runs;
    runs.launch.threads = 2;
    for (const double wall : {3.0, 1.0, 2.0}) {
        thrum::stat::Measured run;
        run.wall = wall;
        run.user = 2 * wall;
        run.voluntary = static_cast<std::uint64_t>(10 * wall);
        run.most_threads = static_cast<unsigned>(wall);
        run.load.seconds = wall;
        run.load.others = wall / 2;
        runs.measured.push_back(run);
    }
    const Point point = point_of(runs);
    EXPECT_EQ(point.runs, 3U);
    EXPECT_EQ(point.wall.median, 2);
    EXPECT_EQ(point.wall.low, 1);
    EXPECT_EQ(point.wall.high, 3);
    EXPECT_EQ(point.user, 4);
    EXPECT_EQ(point.voluntary, 20);
    EXPECT_EQ(point.most_threads, 3U);
    ASSERT_TRUE(point.load.others);
    EXPECT_NEAR(*point.load.others, (1.5 * 3 + 0.5 * 1 + 1 * 2) / 6, 1e-12);
}

TEST(StatSweep, AProgramThatIgnoresTheNumberIsNoticed) {
    const auto seen = [](unsigned threads, unsigned most_threads, double wall, double cpu) {
        Point point;
        point.threads = threads;
        point.most_threads = most_threads;
        point.wall.median = wall;
        point.user = cpu;
        return point;
    };
    thrum::stat::Telling telling;
    telling.variable = "OMP_NUM_THREADS";
    EXPECT_EQ(
        unheeded_text({seen(1, 3, 1, 1.9), seen(2, 3, 1, 1.95), seen(4, 3, 1.1, 2)}, telling),
        "the program had 3 threads at most, whatever number was requested: it may ignore OMP_NUM_THREADS");
    telling.braces = true;
    EXPECT_EQ(unheeded_text({seen(1, 1, 1, 1), seen(2, 1, 1, 1)}, telling),
              "the program had 1 thread at most, whatever number was requested: it may ignore {} in its "
              "arguments or OMP_NUM_THREADS");
    EXPECT_EQ(unheeded_text({seen(1, 2, 1, 1), seen(2, 3, 1, 1)}, telling), "");   // threads of a lock, say
    EXPECT_EQ(unheeded_text({seen(1, 1, 1, 1), seen(2, 1, 0.5, 1)}, telling), ""); // processes
    EXPECT_EQ(unheeded_text({seen(1, 2, 0.1, 0.1), seen(2, 2, 0.1, 0.1)}, telling), "");
    EXPECT_EQ(unheeded_text({seen(1, 0, 1, 1), seen(2, 0, 1, 1)}, telling), "");
    EXPECT_EQ(unheeded_text({seen(1, 2, 1, 1)}, telling), "");
}

// The kernel's accounts of the machine, in steps of 10 ms: 2.8 of two CPUs, it might say.
TEST(StatSweep, WhatOthersDidInAMomentIsNotKnown) {
    thrum::stat::Runs runs;
    thrum::stat::Measured run;
    run.wall = run.load.seconds = 0.003;
    run.load.others = 2.8;
    run.load.stolen = 1.5;
    runs.measured = {run, run};
    EXPECT_FALSE(point_of(runs).load.others);
    EXPECT_EQ(point_of(runs).load.stolen, 0);
}

} // namespace
