// SPDX-License-Identifier: Apache-2.0
//
// Programs that run for a fixed time: told as such, and compared by the rate that they print (cli/stat/rate.hpp).
#include <gtest/gtest.h>

#include "documents.hpp"
#include "place.hpp"
#include "stat/rate.hpp"
#include "stat/rules.hpp"
#include "tools/failure.hpp"

namespace {

using thrum::stat::Point;
using thrum::stat::Rate;
using thrum::stat::Report;

TEST(StatRate, TheLastNumberCounts) {
    const std::string output = "events per second:  1,234.50\nother\nevents per second: 99\ntotal 7 events\n";
    EXPECT_EQ(Rate("per second: *([0-9.,]+)").find(output), 99);
    EXPECT_EQ(Rate("per second: *[0-9.,]+5").find(output), 1234.5) << "without a group the whole match";
    EXPECT_EQ(Rate("total (\\d+)").find(output), 7);
    EXPECT_EQ(Rate("speed ([\\d.e+]+)").find("speed 1.5e+3"), 1500);
    EXPECT_FALSE(Rate("nothing (\\d+)").find(output));
    EXPECT_FALSE(Rate("other").find(output)) << "no number";
    EXPECT_FALSE(Rate("rate (\\d+)").find("rate 0\n")) << "nothing was done";
    EXPECT_FALSE(Rate("x*").find(""));
    EXPECT_TRUE(Rate("(\\d+)$").find(std::string(1000000, 'x') + "\n5"));
    EXPECT_THROW(Rate("("), thrum::Failure);
}

TEST(StatRate, TimesAreForOneAmountOfWork) {
    thrum::stat::Measured run;
    run.wall = 2;
    run.user = 4;
    run.voluntary = 100;
    scale_to_work(run, 500, 250 * 2); // twice the rate of a run of two seconds that had 250
    EXPECT_DOUBLE_EQ(run.wall, 1);
    EXPECT_DOUBLE_EQ(run.user, 2);
    EXPECT_EQ(run.voluntary, 50U);
    scale_to_work(run, 0, 1);
    EXPECT_DOUBLE_EQ(run.wall, 1) << "unknown";
}

Report report_of(double one, double two, double cpu) {
    Report report;
    report.machine.processors = report.cores = 2;
    for (const unsigned threads : {1U, 2U}) {
        Point point;
        point.threads = threads;
        const double wall = threads == 1 ? one : two;
        point.wall = {wall, wall, wall, 0.75, 3};
        point.user = threads == 1 ? one : cpu;
        point.most_threads = threads;
        report.points.push_back(point);
    }
    conclude(report, "");
    return report;
}

TEST(StatRate, AFixedTimeIsNoLoss) {
    const Report fixed = report_of(2.003, 2.004, 4);
    ASSERT_FALSE(fixed.findings.empty());
    EXPECT_EQ(fixed.findings.front().rule, "fixed-time") << fixed.findings.front().cause;
    EXPECT_NE(fixed.findings.front().fix.find("--rate"), std::string::npos);
    for (const Report &other :
         {report_of(2.2, 2.2, 4.4), report_of(2.003, 1.2, 2.2), report_of(2.003, 2.5, 4.8)}) {
        EXPECT_NE(other.findings.front().rule, "fixed-time") << other.findings.front().cause;
    }
    EXPECT_NE(report_of(2.003, 2.004, 2).findings.front().rule, "fixed-time") << "it does no more with two";
}

// Prints how much it has done of what, for any number of threads, it does in no time: four times as much with two.
const char *const kRated = "printf 'done\\nrate: %d/s\\n' $((1000 * $0 * $0)); sleep 0.05";

TEST(StatRate, ProgramsAreComparedByIt) {
    const Ended ended = spawn({CLI_THRUM, "stat", "--sweep", "1,2", "-n", "2", "--rate", "rate: (\\d+)",
                               "--json", "--no-profile", "--", "/bin/sh", "-c", kRated, "{}"});
    ASSERT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(
        json_value(ended.out, "3 < d['points'][0]['wall']['median'] / d['points'][1]['wall']['median'] < 5"),
        "True")
        << ended.out;
    EXPECT_EQ(json_value(ended.out, "d['scaling_text'].split('.')[0]"),
              "Times and counts are scaled to the work of the first run (--rate)");
    EXPECT_NE(ended.err.find("done\nrate: 1000/s\n"), std::string::npos)
        << "the first run's output is shown\n"
        << ended.err;
    EXPECT_EQ(ended.err.find("4000/s"), std::string::npos) << ended.err;
}

TEST(StatRate, WithoutANumberNothingIsCompared) {
    const Ended ended = spawn({CLI_THRUM, "stat", "--sweep", "1,2", "--rate", "speed: (\\d+)", "--",
                               "/bin/sh", "-c", kRated, "{}"});
    EXPECT_EQ(ended.code(), 1);
    EXPECT_NE(ended.err.find("--rate found no number above 0"), std::string::npos) << ended.err;
    EXPECT_EQ(spawn({CLI_THRUM, "stat", "--rate", "(", "--sweep", "1", "--", "/bin/true", "{}"}).code(), 2);
    EXPECT_EQ(spawn({CLI_THRUM, "stat", "--rate", "1", "--", "/bin/true"}).code(), 2);
}

} // namespace
