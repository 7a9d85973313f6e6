// SPDX-License-Identifier: Apache-2.0
//
// `thrum stat` with more threads than most programs have: ten thousand that wait for one mutex (watched.c), counted exactly,
// and where perf events are refused. stat_usage_test.cpp has as many that wait for a hidden lock.
#include <gtest/gtest.h>

#include "documents.hpp"
#include "place.hpp"

namespace {

#ifdef CLI_STAT // which both do their work with

constexpr int kCrowds = 3; // the exit code of `watched crowd`
const Words kCrowd = {CLI_WATCHED, "crowd", "10000"};

Words joined(Words words, const Words &rest) {
    words.insert(words.end(), rest.begin(), rest.end());
    return words;
}

void expect_crowd(const Ended &ended) {
    ASSERT_EQ(ended.code(), kCrowds) << ended.err;
    EXPECT_EQ(json_value(ended.out, "d['points'][0]['most_threads'], d['threads_created']"), "10001 10000");
#ifdef CLI_ELFUTILS
    EXPECT_EQ(
        json_value(ended.out,
                   "d['findings'][0]['rule'] in ('held-asleep', 'hot-mutex', 'one-lock', 'convoy'), "
                   "d['findings'][0]['function'] in ('take', 'crowd'), " // a waiter, or the holder asleep
                   "d['locks'][0]['lock']['symbol']"),
        "True True pot_lock")
        << json_value(ended.out, "d['findings']");
#endif
}

TEST(StatCrowd, TenThousandThreadsCountedExactly) {
    const Ended ended = spawn(joined({CLI_THRUM, "stat", "--exact", "--json", "--"}, kCrowd));
    expect_crowd(ended);
    EXPECT_EQ(ended.err, "");
    EXPECT_EQ(json_value(ended.out, "d['exact'], d['threads_counted'], d['threads_joined']"),
              "True True 10000");
#ifdef CLI_ELFUTILS
    // Of those that came last some may have found it free.
    EXPECT_EQ(json_value(ended.out, "d['locks'][0]['waits'] > 9000 or d['locks'][0]"), "True");
    EXPECT_EQ(json_value(ended.out, "sum(w['calls'] or 0 for w in d['waits']) == "
                                    "sum(l['waits'] or 0 for l in d['locks'])"),
              "True");
#endif
}

// CPU time is sampled by a timer in the program there.
TEST(StatCrowd, TenThousandThreadsWithoutPerfEvents) {
    const Ended ended =
        spawn(joined({CLI_SAMPLED_O2, "confined", CLI_THRUM, "stat", "--json", "--"}, kCrowd));
    expect_crowd(ended);
    EXPECT_NE(ended.out.find("perf events are refused"), std::string::npos) << ended.out.substr(0, 4000);
    EXPECT_EQ(json_value(ended.out, "d['profile_source']"), "CPU timer in the program");
}

#endif

} // namespace
