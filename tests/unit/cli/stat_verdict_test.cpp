// SPDX-License-Identifier: Apache-2.0
//
// What is concluded of reports that are made up (cli/stat/rules.hpp), and of names of functions: cases that were told wrongly
// once. stat_rules_*_test.cpp go through the rules.
#include <gtest/gtest.h>

#include <algorithm>

#include "stat/facts.hpp"
#include "stat/rules.hpp"
#include "stat/waits.hpp"
#include "tools/text.hpp"

namespace {

using thrum::stat::Doing;
using thrum::stat::Facts;
using thrum::stat::Finding;
using thrum::stat::Frame;
using thrum::stat::LockKind;
using thrum::stat::Outcome;
using thrum::stat::Point;
using thrum::stat::Report;
using thrum::stat::Site;

Frame frame(const char *function, const char *module, bool is_user) {
    Frame made;
    made.function = function;
    made.module = module;
    made.is_user = is_user;
    return made;
}

// Of a machine of two cores, without other load.
Point point(unsigned threads, double wall, double cpu, unsigned most_threads) {
    Point made;
    made.threads = threads;
    made.runs = 3;
    made.wall = {wall, wall * 0.99, wall * 1.01, 0.75, 3};
    made.user = cpu;
    made.voluntary = 100;
    made.most_threads = most_threads;
    made.load.seconds = 3 * wall;
    made.load.others = 0.01;
    return made;
}

Report report_of(const std::vector<Point> &points) {
    Report made;
    made.machine.processors = 2;
    made.rate = 100;
    made.points = points;
    made.sampled_wall = points.back().wall.median;
    return made;
}

double &time_of(Report &report, Doing doing) {
    return report.doing[static_cast<int>(doing)];
}

std::string first_rule(const Report &report) {
    return report.findings.empty() ? "" : report.findings.front().rule;
}

// --- names ----------------------------------------------------------------------------------------------------

// As rustc 1.95 mangles them, as it did before, and demangled.
TEST(StatVerdict, LocksOfOtherLanguagesAreLocks) {
    for (const char *name :
         {"_RNvMNtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync5mutex5futexNtB2_5Mutex14lock_contended",
          "_RNvMNtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync6rwlock5futexNtB2_6RwLock14read_contended",
          "_RNvMNtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync6rwlock5futexNtB2_6RwLock15write_contended",
          "_ZN3std3sys4sync6rwlock5futex6RwLock15write_contended17h0123456789abcdefE",
          "std::sys::sync::mutex::futex::Mutex::lock_contended",
          "_RNvMNtCs123_11parking_lot9raw_mutexNtB2_8RawMutex9lock_slow",
          "parking_lot::raw_mutex::RawMutex::lock_slow",
          "parking_lot::raw_rwlock::RawRwLock::lock_exclusive_slow",
          "parking_lot::raw_rwlock::RawRwLock::lock_shared_slow", "absl::Mutex::LockSlow",
          "absl::lts_20230125::Mutex::LockSlowWithDeadline"})
        EXPECT_EQ(thrum::stat::doing_by_names({frame(name, "prog", true)}), Doing::kLockWait) << name;
}

TEST(StatVerdict, NamesThatContainThemAreNot) {
    for (const char *name :
         {"block_slow", "parking_lot::raw_mutex::RawMutex::unlock_slow", "spread_contended"})
        EXPECT_FALSE(thrum::stat::doing_by_names({frame(name, "prog", true)})) << name;
}

// --- names on a terminal ------------------------------------------------------------------------------------

TEST(StatVerdict, NamesAreNoCommandsToATerminal) {
    const std::string evil = "e\x1b[31m\nVERDICT  \x7fvil\t\xc2\x9b\xc3\xa9\r";
    Report report = report_of({point(0, 1, 1, 2)});
    report.locks.emplace_back();
    report.locks.back().lock.text = report.locks.back().lock.symbol = evil;
    Site site;
    site.lock = 0;
    site.share = 1;
    site.samples = 100;
    for (const bool is_user : {false, true})
        site.stack.push_back(frame(evil.c_str(), evil.c_str(), is_user));
    site.stack.back().file = evil;
    report.waits = report.burns = {site};
    report.command = report.warnings = report.how_known = {evil};
    time_of(report, Doing::kRunning) = time_of(report, Doing::kLockWait) = 1;
    conclude(report, evil);
    Finding named;
    named.cause = named.fix = evil;
    report.findings.push_back(named);
    named.cause = std::string(100, 'x') + evil;
    report.findings.push_back(named);
    const std::string text = text_of(report);
    const auto is_control = [](char c) { return c == 0x7f || (c != '\n' && c >= 0 && c < 0x20); };
    EXPECT_TRUE(std::none_of(text.begin(), text.end(), is_control)) << text;
    EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos);
    EXPECT_EQ(text.find("\nVERDICT"), std::string::npos) << "a line of the name's";
    EXPECT_NE(text.find("e?[31m?VERDICT"), std::string::npos) << text;
}

TEST(StatVerdict, CharactersAreNotCut) {
    const std::string text = "a\xc3\xa9\xe2\x82\xacz";
    const char *const wanted[] = {
        "", "a", "a", "a\xc3\xa9", "a\xc3\xa9", "a\xc3\xa9", "a\xc3\xa9\xe2\x82\xac"};
    for (std::size_t bytes = 0; bytes < std::size(wanted); bytes++)
        EXPECT_EQ(thrum::cut(text, bytes), wanted[bytes]) << bytes;
    EXPECT_EQ(thrum::cut(text, 7), text);
    EXPECT_EQ(thrum::cut(text, 70), text);
    EXPECT_EQ(thrum::terminal_text("a\xc3\xa9\xe2\x82\xac"), "a\xc3\xa9\xe2\x82\xac");
}

// --- programs that fail ---------------------------------------------------------------------------------------

// Of a sweep whose second number of threads failed there is one number left, and of one run nothing else.
TEST(StatVerdict, AFailureIsToldWhereThereIsNothingToCompareWith) {
    for (const unsigned threads : {0U, 1U}) {
        Report report = report_of({point(threads, 1, 1, 1)});
        conclude(report, "the program was ended by signal 11 (Segmentation fault)");
        EXPECT_EQ(report.outcome, Outcome::kInconclusive);
        EXPECT_EQ(report.verdict, "Inconclusive: the program was ended by signal 11 (Segmentation fault).");
        ASSERT_EQ(first_rule(report), "inconclusive");
        EXPECT_EQ(report.findings.front().cause, "The program failed");
    }
}

// --- one run --------------------------------------------------------------------------------------------------

// The first thread works, and another one waits for it to want something.
// Too few waits to blame a lock for are not said not to be there.
TEST(StatVerdict, OneRunDoesNotDenyWhatItShows) {
    Report report = report_of({point(0, 1, 1.2, 3)});
    report.sampled_wall = 1;
    time_of(report, Doing::kRunning) = 1.2;
    time_of(report, Doing::kLockWait) = 0.01;
    Report without = report;
    report.waits.emplace_back();
    report.waits.back().doing = Doing::kLockWait;
    report.waits.back().samples = 1;
    report.waits.back().share = 1;
    report.waits.back().seconds = 0.01;
    conclude(report, "");
    EXPECT_NE(report.verdict.find("waited for locks"), std::string::npos) << report.verdict;
    conclude(without, "");
    EXPECT_NE(without.verdict.find("one run shows nothing"), std::string::npos) << without.verdict;
}

TEST(StatVerdict, AnInterruptBeforeTheFirstSampleHasNoVerdict) {
    Report report = report_of({point(1, 1, 1, 2)});
    report.sampled_wall = 0;
    report.interrupted = true;
    conclude(report, "");
    EXPECT_EQ(report.verdict.find("one run shows nothing"), std::string::npos) << report.verdict;
    EXPECT_NE(report.verdict.find("Interrupted before threads were observed"), std::string::npos)
        << report.verdict;
}

TEST(StatVerdict, OneThreadAtWorkDisturbsNoOther) {
    Report report = report_of({point(0, 1, 1, 2)});
    time_of(report, Doing::kRunning) = 1;
    time_of(report, Doing::kIdleWait) = 1;
    for (const Doing doing : {Doing::kRunning, Doing::kIdleWait}) {
        report.threads.emplace_back();
        report.threads.back().end = 1;
        report.threads.back().spans = {{0, 1, doing, SIZE_MAX, doing == Doing::kRunning ? 1.0 : 0.0}};
    }
    conclude(report, "");
    ASSERT_EQ(first_rule(report), "sequential");
    EXPECT_EQ(report.verdict.find("in each other's way"), std::string::npos) << report.verdict;
    EXPECT_NE(report.verdict.find("one thread alone"), std::string::npos) << report.verdict;
}

TEST(StatVerdict, ThreadsThatAreTooManyDoNotEither) {
    Report report = report_of({point(0, 1, 2, 16)});
    time_of(report, Doing::kRunning) = 2;
    time_of(report, Doing::kRunnable) = 14;
    conclude(report, "");
    ASSERT_EQ(first_rule(report), "oversubscribed");
    EXPECT_EQ(report.verdict.find("in each other's way"), std::string::npos) << report.verdict;
}

// --- threads that wait for messages -------------------------------------------------------------------------

// One run of a second; four threads work, or wait for a lock for so long, and forty are in read().
Report server(double lock_waits, bool for_messages) {
    Report made = report_of({point(0, 1, 0.26, 45)});
    made.points.front().voluntary = 2000;
    time_of(made, Doing::kRunning) = 0.26;
    time_of(made, Doing::kLockWait) = lock_waits;
    time_of(made, Doing::kInputOutput) = 40;
    made.locks.emplace_back();
    made.locks.back().lock.kind = LockKind::kGlobal;
    made.locks.back().share = 1;
    Site wait;
    wait.stack = {frame("pthread_mutex_lock", "libc.so.6", false), frame("work", "prog", true)};
    wait.samples = static_cast<std::uint64_t>(100 * lock_waits);
    wait.share = 1;
    wait.seconds = lock_waits;
    wait.lock = 0;
    made.waits = {wait};
    Site input;
    input.stack = {frame("read", "libc.so.6", false), frame("serve", "prog", true)};
    input.doing = Doing::kInputOutput;
    input.seconds = 40;
    input.is_message = for_messages;
    made.others = {input};
    return made;
}

TEST(StatVerdict, WaitsForMessagesAreNotHeldAgainstLocks) {
    Report report = server(1, true);
    EXPECT_GT(Facts(report).lock_share, 0.75);
    conclude(report, "");
    EXPECT_EQ(first_rule(report), "hot-mutex");
}

// Those that work wait for CPUs, which other programs have, ten times as long as for the lock.
TEST(StatVerdict, NorWhereTheMachineIsBusy) {
    Report report = server(0.23, true);
    time_of(report, Doing::kRunnable) = 2.7;
    EXPECT_GT(Facts(report).lock_share, 0.05);
    conclude(report, "");
    EXPECT_NE(first_rule(report), "io-bound");
}

TEST(StatVerdict, ReadersOfFilesAre) {
    Report report = server(1, false);
    EXPECT_LT(Facts(report).lock_share, 0.05);
    conclude(report, "");
    EXPECT_EQ(first_rule(report), "io-bound");
}

// A thread that waits for answers waits for a lock now and then, too.
TEST(StatVerdict, ALockAmongMessagesIsNotToBlame) {
    for (const double seldom : {0.08, 0.02}) {
        Report report = server(seldom, true);
        if (seldom < 0.05)
            time_of(report, Doing::kRunning) = 0.01;
        EXPECT_LT(Facts(report).lock_share, 0.05);
        conclude(report, "");
        EXPECT_EQ(first_rule(report), "io-bound");
    }
}

} // namespace
