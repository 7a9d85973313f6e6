// SPDX-License-Identifier: Apache-2.0
//
// Where no rule finds a cause (cli/stat/rules/rest.cpp and table.cpp): programs that are well, busy machines, short runs.
#include <gtest/gtest.h>

#include "place.hpp"
#include "stat/names.hpp"
#include "stat/rules.hpp"
#include "stat_case.hpp"

namespace {

std::vector<std::string> warnings_of(double share, const Frame &inner) {
    Case made;
    made.point(1, 1, 1, 0).point(2, 1, 1, 0);
    made.burns({inner, own("multiply")}, share, 0).burns({own("work")}, 1 - share, 1);
    made.burns({library("", "libc.so.6"), library("malloc"), own("make")}, 0.1, 0);
    return made.concluded().warnings;
}

TEST(StatRules, WhatScalesIsNotAccused) {
    Case made = random_case();
    made.report.points.clear();
    made.point(1, 0.14, 0.14, 0).point(2, 0.07, 0.14, 0).point(4, 0.075, 0.145, 0.001);
    const Report &report = made.concluded();
    EXPECT_EQ(report.outcome, Outcome::kScales);
    EXPECT_EQ(rules_of(report), "scales");
    EXPECT_EQ(report.findings.front().function, "");
}

TEST(StatRules, OneRunOfTheSame) {
    Case made = random_case();
    made.report.points.erase(made.report.points.begin(), made.report.points.begin() + 2);
    made.report.burns_one.clear();
    const Report &report = made.concluded();
    EXPECT_EQ(report.outcome, Outcome::kOneRun);
    EXPECT_EQ(rules_of(report), "hidden-lock");
    EXPECT_NE(report.verdict.find("a --sweep can tell"), std::string::npos) << report.verdict;
}

TEST(StatRules, OneRunOfWhatIsWell) {
    Case made;
    made.point(0, 1, 1.9, 0.02).doing(Doing::kRunning, 1.9).doing(Doing::kLockWait, 0.05);
    made.report.points.front().most_threads = 3;
    const Report &report = made.concluded();
    EXPECT_EQ(report.outcome, Outcome::kOneRun);
    EXPECT_EQ(rules_of(report), "scales");
    EXPECT_EQ(report.findings.front().confidence, Confidence::kLow);
}

TEST(StatRules, ABusyMachineTellsNothing) {
    Case made;
    made.point(1, 1.6, 1, 0)
        .point(2, 1.5, 1, 0)
        .others(1.3)
        .doing(Doing::kRunning, 1)
        .doing(Doing::kRunnable, 1.4);
    made.report.points.front().run_delay = 0.6;
    made.report.points.back().run_delay = 1.4;
    const Report &report = made.concluded();
    EXPECT_EQ(report.outcome, Outcome::kInconclusive);
    EXPECT_EQ(rules_of(report), "inconclusive");
    EXPECT_EQ(report.findings.front().cause, "The machine was busy");
    EXPECT_NE(report.verdict.find("others used 1.3 of 2 CPUs"), std::string::npos) << report.verdict;
}

// Of a short run, and where /proc/stat is hidden, it is not known what others did.
TEST(StatRules, ABusyMachineByItsPressure) {
    const auto made = [](double waited, unsigned threads) {
        Case one;
        one.point(1, 1.1, 1, 0)
            .point(threads, 1.5, 1, 0)
            .doing(Doing::kRunning, 1)
            .doing(Doing::kRunnable, 1.4);
        one.report.points.back().run_delay = 1.4;
        for (Point &point : one.report.points) {
            point.load.others.reset();
            point.load.waited = waited;
        }
        return one.concluded().outcome;
    };
    EXPECT_EQ(made(0.6, 2), Outcome::kInconclusive);
    EXPECT_EQ(made(0.02, 2), Outcome::kSlower);
    EXPECT_EQ(made(0.6, 8), Outcome::kSlower) << "its own threads wait for each other";
}

// With one thread it got less of a busy machine, and did less in its time.
TEST(StatRules, AFixedTimeOnABusyMachine) {
    const auto made = [](double wall) {
        Case one;
        one.point(1, 2.06, 0.25, 0).point(2, wall, 1.2, 0).others(1.4).doing(Doing::kRunning, 1.2);
        one.report.points.front().run_delay = 1.8;
        one.report.points.back().run_delay = 2.8;
        return one.concluded();
    };
    EXPECT_EQ(made(2.05).outcome, Outcome::kInconclusive);
    EXPECT_EQ(made(2.15).outcome, Outcome::kInconclusive);
    EXPECT_EQ(made(6).outcome, Outcome::kSlower) << "4.8 times the CPU time";
}

TEST(StatRules, HarmlessLoadOfOthers) {
    Case made;
    made.point(1, 1, 1, 0).point(2, 0.52, 1, 0).others(0.3).doing(Doing::kRunning, 1);
    EXPECT_EQ(made.concluded().outcome, Outcome::kScales);
}

// Likewise at an OpenMP barrier, and in a lock's calls: twelve samples.
TEST(StatRules, AFewSamplesAreNoBarrierAndNoLock) {
    const auto made = [](const std::vector<Frame> &stack, double weight) {
        Case one;
        one.point(1, 0.5, 0.5, 0).point(2, 0.5, 0.95, 0.02).doing(Doing::kRunning, 0.97);
        one.burns(stack, 0.4, 0).burns({own("work", 30)}, 0.6, 1);
        for (std::vector<Site> *burns : {&one.report.burns, &one.report.burns_one})
            for (Site &site : *burns)
                site.samples = static_cast<std::uint64_t>(static_cast<double>(site.samples) * weight);
        return rules_of(one.concluded());
    };
    const std::vector<Frame> barrier = {library("", "libgomp.so.1"), library("GOMP_barrier", "libgomp.so.1"),
                                        own("step._omp_fn.0", 12)},
                             lock = {library("malloc"), own("make")};
    EXPECT_EQ(made(barrier, 1), "busy-wait");
    EXPECT_EQ(made(barrier, 0.12).find("busy-wait"), std::string::npos) << made(barrier, 0.12);
    EXPECT_EQ(made(lock, 1), "allocator");
    EXPECT_EQ(made(lock, 0.12).find("allocator"), std::string::npos) << made(lock, 0.12);
}

// Where the whole run takes 4 ms, making the threads is what more of them cost.
TEST(StatRules, TooShortToTell) {
    const auto memory = [](double seconds) {
        Case one;
        one.point(1, seconds, seconds, 0).point(2, seconds, 1.6 * seconds, 0);
        return one.concluded();
    };
    EXPECT_EQ(rules_of(memory(0.4)), "false-sharing");
    EXPECT_EQ(rules_of(memory(0.004)), "inconclusive");
    EXPECT_EQ(memory(0.004).findings.front().cause, "The runs are too short: 4.00 ms each");

    // In one run of a few looks, in which it was not seen at work.
    const auto alone = [](double seconds) {
        Case one;
        one.point(0, seconds, 0.15 * seconds, 0);
        return one.concluded().findings.front().cause;
    };
    EXPECT_EQ(alone(0.5), "The threads have little to do: 0.15 CPUs used");
    EXPECT_EQ(alone(0.005), "The run is too short: 5.00 ms");

    const auto oversubscribed = [](double seconds) {
        Case one;
        one.point(0, seconds, 1.9 * seconds, 0);
        one.report.points.front().most_threads = 16;
        one.doing(Doing::kRunning, 1.9 * seconds).doing(Doing::kRunnable, 12 * seconds);
        return rules_of(one.concluded());
    };
    EXPECT_EQ(oversubscribed(0.5), "oversubscribed");
    EXPECT_EQ(oversubscribed(0.005).find("oversubscribed"), std::string::npos) << oversubscribed(0.005);

    const auto sequential = [](double seconds) {
        Case one;
        one.point(1, seconds, seconds, 0, 0).point(2, 0.85 * seconds, seconds, 0, 0);
        one.doing(Doing::kRunning, seconds);
        one.thread(0, 0.85 * seconds).thread(0.4 * seconds, 0.85 * seconds);
        return rules_of(one.concluded());
    };
    EXPECT_EQ(sequential(1), "sequential");
    EXPECT_NE(sequential(0.01), "sequential");

    const auto coherency = [](double seconds) {
        Case one;
        one.report.machine.processors = 4;
        for (const unsigned n : {1U, 2U, 3U, 4U}) {
            const double wall = seconds / n * (1 + 0.02 * (n - 1) + 0.3 * n * (n - 1));
            one.point(n, wall, wall * n, 0);
        }
        one.report.scaling = thrum::stat::Scaling{0.02, 0.3, 0.01, 2};
        return rules_of(one.concluded()).find("coherency") != std::string::npos;
    };
    EXPECT_TRUE(coherency(1));
    EXPECT_FALSE(coherency(0.005));
}

// One look found a thread waiting; and a few waits of a short run, counted, come to a high rate.
TEST(StatRules, AWaitOrTwoAreNoDisease) {
    const auto seen = [](std::uint64_t samples) {
        Case one;
        one.point(0, 0.05, 0.08, 0).doing(Doing::kRunning, 0.08).doing(Doing::kLockWait, 0.02);
        one.report.points.front().most_threads = 3;
        one.lock(LockKind::kGlobal, "lock in prog", 1)
            .waits({library("pthread_mutex_lock"), own("put")}, samples);
        return rules_of(one.concluded()).find("hot-mutex") != std::string::npos;
    };
    EXPECT_FALSE(seen(1));
    EXPECT_TRUE(seen(6));
    const auto counted = [](std::uint64_t calls) {
        Case one;
        one.point(0, 0.05, 0.02, 0).doing(Doing::kRunning, 0.02);
        one.report.points.front().most_threads = 3;
        one.lock(LockKind::kGlobal, "lock in prog", 1).waits({library("pthread_mutex_lock"), own("put")}, 0);
        one.report.waits.front().calls = calls;
        one.report.waits.front().seconds = 0.03;
        return rules_of(one.concluded()).find("hot-mutex") != std::string::npos;
    };
    EXPECT_FALSE(counted(60));
    EXPECT_TRUE(counted(600));
}

// Four threads on two CPUs that others use as well, in one run.
TEST(StatRules, OneRunOnABusyMachine) {
    const auto made = [](double others) {
        Case one;
        one.point(0, 1, 1.2, 0).others(others);
        one.report.points.front().most_threads = 9;
        one.doing(Doing::kRunning, 1.2).doing(Doing::kRunnable, 7);
        return rules_of(one.concluded());
    };
    EXPECT_EQ(made(0.01), "oversubscribed");
    EXPECT_EQ(made(0.8), "inconclusive");
}

// The kernel's accounts of a few ticks are all or nothing.
TEST(StatRules, TheKernelsShareOfLittleTimeIsNotKnown) {
    const auto made = [](double seconds) {
        Case one;
        one.point(1, seconds, seconds, 0)
            .point(4, 2 * seconds, 0, 2 * seconds)
            .doing(Doing::kRunning, seconds);
        return text_of(one.concluded());
    };
    EXPECT_NE(made(0.1).find("100 % of CPU is in the kernel"), std::string::npos) << made(0.1);
    EXPECT_EQ(made(0.02).find("% of CPU is in the kernel"), std::string::npos) << made(0.02);
    EXPECT_NE(made(0.02).find("kernel's share: unknown"), std::string::npos);
    Case storm;
    storm.point(1, 0.02, 0, 0.02).point(2, 0.02, 0, 0.03);
    storm.report.samples = 3;
    storm.report.threads_created = 500;
    ASSERT_EQ(rules_of(storm.concluded()), "thread-churn");
    for (const std::string &line : storm.report.findings.front().evidence)
        EXPECT_EQ(line.find("in the kernel"), std::string::npos) << line;
}

TEST(StatRules, AProgramThatFailed) {
    Case made;
    made.point(1, 1, 1, 0).point(2, 0.2, 0.3, 0);
    const Report &report =
        made.concluded("the program was ended by signal 11 (Segmentation fault) with 2 threads");
    EXPECT_EQ(report.outcome, Outcome::kInconclusive);
    EXPECT_NE(report.verdict.find("signal 11"), std::string::npos);
    EXPECT_EQ(rules_of(report), "inconclusive");
}

TEST(StatRules, NothingAtAll) {
    Report report;
    conclude(report, "");
    EXPECT_EQ(report.outcome, Outcome::kInconclusive);
    EXPECT_FALSE(text_of(report).empty());
}

// What differs further out than there is room is no row of its own.
TEST(StatRules, RowsThatLookAlikeAreOne) {
    const std::string far(40, 'f');
    const auto stack = [&far](const std::string &outermost) {
        return std::vector<Frame>{library("random"), own("draw"), own(far.c_str(), 25),
                                  own(outermost.c_str(), 33)};
    };
    Case made;
    made.point(1, 1, 1, 0).point(2, 1, 2, 0).doing(Doing::kRunning, 1).doing(Doing::kLockWait, 1);
    made.lock(LockKind::kLibrary, "libc.so.6 .data (static lock inside libc)", 1);
    made.waits({library("putc"), own("put")}, 40, 0.4);
    made.waits(stack(std::string(40, 'a')), 35, 0.35).waits(stack(std::string(40, 'b')), 25, 0.25);
    const std::string text = text_of(made.concluded());
    const std::size_t one = text.find("60%  random <- draw (prog.c:21) <- " + far);
    EXPECT_NE(one, std::string::npos) << text;
    EXPECT_GT(text.find("40%  putc <- put (prog.c:21)"), one) << text;
    EXPECT_EQ(text.find("35%"), std::string::npos) << text;
}

// A percentage says little without the number that it is of.
TEST(StatRules, SharesStandBesideTheirSamples) {
    Case made;
    made.point(1, 1, 1, 0).point(2, 0.6, 1, 0).doing(Doing::kRunning, 1);
    made.burns({own("work")}, 0.5, 0.3).burns({own("rest")}, 0.5, 0);
    const std::string both = text_of(made.concluded());
    EXPECT_NE(both.find("CPU time went to (perf event, 30 and 100 samples)"), std::string::npos) << both;
    made.report.burns_one.clear();
    const std::string one = text_of(made.report);
    EXPECT_NE(one.find("CPU time went to (perf event, 100 samples)"), std::string::npos) << one;
}

// Of Rust's functions in functions, which there is no room for, the outermost says where it is.
TEST(StatRules, ClosuresAreCutTogether) {
    for (const char *name : {"prog::run::{closure#0}::{closure#0}::{closure#12}",
                             "prog::run::{{closure}}::{{closure}}::{{closure}}"}) { // of older compilers
        Case made;
        made.point(1, 1, 1, 0).point(2, 1, 2, 0).doing(Doing::kRunning, 1).doing(Doing::kLockWait, 1);
        made.lock(LockKind::kHeap, "heap (0x10)", 1);
        made.waits({library("std::sync::poison::mutex::Mutex::lock"), own(name, 5)}, 100);
        const std::string text = text_of(made.concluded());
        EXPECT_NE(text.find("<- prog::run::{closure} (prog.c:5)"), std::string::npos) << text;
    }
}

TEST(StatRules, TheDocumentsHaveThemAll) {
    const std::string guide = read_file(CLI_DOCS "/guide/stat.md");
    const std::string reference = read_file(CLI_DOCS "/reference/stat-json.md");
    for (const std::string &name : thrum::stat::rule_names()) {
        EXPECT_NE(guide.find("`" + name + "`"), std::string::npos) << name;
        EXPECT_NE(reference.find("`\"" + name + "\"`"), std::string::npos) << name;
    }
}

TEST(StatRules, LibrariesWithoutNames) {
    const std::vector<std::string> said = warnings_of(0.6, library("", "libblas.so.3"));
    ASSERT_EQ(said.size(), 1U) << "libc's function is known by what calls it";
    EXPECT_EQ(said.front(), "no debugging information: libblas.so.3, a system library; functions in it, "
                            "which 60 % of CPU time went through, are unknown");
    EXPECT_TRUE(warnings_of(0.6, library("dgemm", "libblas.so.3")).empty());
    EXPECT_TRUE(warnings_of(0.02, library("", "libblas.so.3")).empty());
    for (const char *memory : {"[vdso]", "(unknown)", "//anon", ""})
        EXPECT_TRUE(warnings_of(0.6, library("", memory)).empty()) << memory;
    Case waits;
    waits.point(1, 1, 1, 0).point(2, 1, 1, 0);
    waits.lock(LockKind::kLibrary, "libpool.so.1 .bss (static lock inside libpool)", 1)
        .waits({library("pthread_mutex_lock"), library("", "libpool.so.1")}, 60);
    ASSERT_EQ(waits.concluded().warnings.size(), 1U);
    EXPECT_NE(waits.report.warnings.front().find("libpool.so.1"), std::string::npos);
    EXPECT_NE(waits.report.warnings.front().find("100 % of waits for locks"), std::string::npos);
}

// It is in no file, so there is no offset to tell, and how its names are to be had is said.
TEST(StatRules, CodeCompiledAtRunTime) {
    const Frame made = library("", thrum::stat::kMadeCode);
    EXPECT_EQ(thrum::stat::frame_name(made), "(compiled at run time)");
    EXPECT_EQ(thrum::stat::frame_place(made), "(compiled at run time)");
    const std::vector<std::string> said = warnings_of(0.6, made);
    ASSERT_EQ(said.size(), 1U);
    EXPECT_EQ(said.front(),
              "no names of code compiled at run time, which 60 % of CPU time went through: let the program "
              "write them to /tmp/perf-PID.map (java -XX:+UnlockDiagnosticVMOptions "
              "-XX:+DumpPerfMapAtExit, jcmd PID Compiler.perfmap, node --perf-basic-prof, python -X perf)");
    EXPECT_TRUE(warnings_of(0.6, library("Main.run", thrum::stat::kMadeCode)).empty());
    EXPECT_TRUE(warnings_of(0.02, made).empty());
}

} // namespace
