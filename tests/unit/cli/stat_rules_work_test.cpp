// SPDX-License-Identifier: Apache-2.0
//
// The rules of memory and of how work is divided (cli/stat/rules/memory.cpp and work.cpp) on reports that are made up.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>

#include "stat/rules.hpp"
#include "stat_case.hpp"

namespace {

TEST(StatRules, MemoryThatIsFoughtFor) {
    Case made;
    made.point(1, 0.4, 0.4, 0).point(2, 0.7, 1.4, 0).doing(Doing::kRunning, 1.4);
    made.burns({own("count"), own("worker", 30)}, 1, 1);
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "false-sharing");
    EXPECT_EQ(report.findings.front().function, "count");
    EXPECT_EQ(report.findings.front().confidence, Confidence::kLow) << "a hint";
}

// Where the processor counts, more than a hint: or not, if it counted nothing of the kind.
TEST(StatRules, MemoryThatIsFoughtForByTheProcessorsCounters) {
    const auto made = [](double cycles, double misses) {
        Case one;
        one.point(1, 1, 1, 0).point(2, 1.1, 2.2, 0).doing(Doing::kRunning, 2.2);
        one.burns({own("count"), own("worker")}, 1, 1);
        one.report.counters_one = counts(1e9, 0.7e9, 1e5);
        one.report.counters = counts(1e9, cycles, misses);
        return one;
    };
    Case shared = made(2e9, 2e7), slow = made(2e9, 1e5);
    const Finding &counted = shared.concluded().findings.at(0), &hint = slow.concluded().findings.at(0);
    EXPECT_EQ(counted.rule, "false-sharing");
    EXPECT_EQ(counted.confidence, Confidence::kMedium);
    EXPECT_EQ(counted.cause.find("a hint"), std::string::npos) << counted.cause;
    EXPECT_NE(
        std::find(counted.evidence.begin(), counted.evidence.end(),
                  "by the processor's counters 2.9x the cycles per instruction, and 40.0x the cache misses"),
        counted.evidence.end());
    EXPECT_EQ(hint.confidence, Confidence::kLow);
    EXPECT_NE(hint.cause.find("a hint"), std::string::npos) << hint.cause;
}

TEST(StatRules, CoherencyWhereTheLawSaysSo) {
    Case made;
    made.report.machine.processors = 8;
    for (const unsigned n : {1U, 2U, 4U, 8U}) {
        const double wall = (1 + 0.03 * n * (n - 1)) / n;
        made.point(n, wall, wall * n, 0);
    }
    made.report.scaling = thrum::stat::Scaling{0, 0.03, 0.01, 5};
    EXPECT_EQ(rules_of(made.concluded()).find("coherency"), 0U) << rules_of(made.report);
}

TEST(StatRules, ASequentialPart) {
    Case made;
    made.point(1, 1, 1, 0).point(2, 0.85, 1, 0).doing(Doing::kRunning, 1);
    made.thread(0, 0.85).thread(0.7, 0.85);
    made.burns({own("prepare", 7), own("main", 40)}, 0.7, 0.7)
        .burns({own("chew", 9), own("worker", 30)}, 0.3, 0.3);
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "sequential");
    EXPECT_EQ(report.findings.front().function, "prepare");
    EXPECT_EQ(report.outcome, Outcome::kScalesSome);
}

// One run of a program whose other threads only wait: it may be made for one, as one with a thread for signals.
TEST(StatRules, AProgramMadeForOneThread) {
    const auto made = [](double of_the_other) {
        Case one;
        one.point(0, 1, 1, 0).doing(Doing::kRunning, 1);
        one.report.points.front().most_threads = 2;
        one.thread(0, 1).thread(0, 1, Doing::kIdleWait);
        one.report.threads.front().cpu = 1 - of_the_other;
        one.report.threads.back().cpu = of_the_other;
        return one.concluded().findings.front();
    };
    EXPECT_EQ(made(0).rule, "sequential");
    EXPECT_EQ(made(0).confidence, Confidence::kLow);
    EXPECT_EQ(made(0).cause, "One thread alone does the work");
    EXPECT_EQ(made(0.1).confidence, Confidence::kLow) << "it begins, and waits";
    EXPECT_EQ(made(0.3).confidence, Confidence::kMedium) << "both work";
    EXPECT_EQ(made(0.3).cause, "One thread alone does a part of the work");
}

TEST(StatRules, InputAndOutput) {
    Case made;
    made.point(1, 0.55, 0.01, 0.01)
        .point(4, 0.54, 0.01, 0.01)
        .doing(Doing::kInputOutput, 2)
        .doing(Doing::kRunning, 0.02);
    Site site;
    site.stack = {library("recv"), own("receive_answer")};
    site.doing = Doing::kInputOutput;
    site.samples = 12;
    site.seconds = 2;
    made.report.others.push_back(site);
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "io-bound");
    EXPECT_EQ(report.findings.front().function, "receive_answer");
    EXPECT_NE(text_of(report).find("\nWHERE threads waited (for no known lock; 12 samples)\n  100%  "),
              std::string::npos)
        << text_of(report);
}

TEST(StatRules, MoreThreadsThanCores) {
    Case made;
    made.point(1, 1, 1, 0).point(2, 0.5, 1, 0).point(32, 0.8, 1.55, 0.04);
    made.doing(Doing::kRunning, 1.6).doing(Doing::kRunnable, 20);
    EXPECT_EQ(rules_of(made.concluded()), "oversubscribed");
}

// On a machine of which the program may use a small part only, what others use is mostly of the rest.
TEST(StatRules, MoreThreadsThanTheCoresThatMayBeUsed) {
    Case made;
    made.point(1, 1, 1, 0).point(2, 0.5, 1, 0).point(32, 0.8, 1.55, 0.04).others(10);
    made.doing(Doing::kRunning, 1.6).doing(Doing::kRunnable, 20);
    made.report.host_processors = 64;
    EXPECT_EQ(rules_of(made.concluded()), "oversubscribed");
    made.report.host_processors = 16;
    EXPECT_EQ(rules_of(made.concluded()).find("oversubscribed"), std::string::npos);
}

TEST(StatRules, AThreadThatKeepsWaitingIsNotSequential) {
    Case made;
    made.point(1, 1, 0.03, 0.01, 800).point(4, 1, 0.03, 0.01, 820).doing(Doing::kRunning, 0.04);
    made.thread(0, 0.5, Doing::kRunnable);
    EXPECT_EQ(rules_of(made.concluded()), "inconclusive");
}

TEST(StatRules, ThreadsWithoutWork) {
    Case made;
    made.point(1, 0.45, 0.02, 0.01)
        .point(4, 0.45, 0.02, 0.01)
        .doing(Doing::kRunning, 0.03)
        .doing(Doing::kIdleWait, 1.6);
    EXPECT_EQ(rules_of(made.concluded()), "inconclusive");
    EXPECT_EQ(made.report.outcome, Outcome::kNoFaster);
}

// Two threads with equal work, of which one waited for a CPU that another program had: it is left over in the end.
TEST(StatRules, AThreadLeftOverSinceItHadToWaitForACpu) {
    const auto made = [](double run_delay, double others) {
        Case one;
        one.point(0, 1, 1.7, 0).others(others).doing(Doing::kRunning, 1.4).doing(Doing::kRunnable, 0.3);
        one.report.points.front().most_threads = 3;
        one.report.points.front().run_delay = run_delay;
        one.thread(0, 0.7).thread(0, 1);
        return rules_of(one.concluded());
    };
    EXPECT_EQ(made(0, 0), "sequential");
    EXPECT_EQ(made(0.3, 0), "sequential") << "its own threads kept it waiting";
    EXPECT_NE(made(0.3, 0.3), "sequential");
}

// Two threads that meet at barriers all the time, each of which a look now and then finds asleep there. The looks find one of them more
// often: it cannot be alone for as long as the other one had a CPU, or waited for one.
TEST(StatRules, ThreadsThatMeetAllTheTimeAreNotAlone) {
    const auto made = [](double cpu, double run_delay) {
        Case one;
        one.point(0, 1, 1.7, 0).doing(Doing::kRunning, 1.7);
        one.report.points.front().most_threads = 3;
        one.thread(0, 1, Doing::kJoinWait).slowed(0, 1, 0.85).slowed(0, 1, cpu);
        one.report.threads.back().spans = {{0, 0.32, Doing::kIdleWait, SIZE_MAX, 0.27},
                                           {0.32, 0.92, Doing::kRunning, SIZE_MAX, 0.5}};
        one.report.threads.back().run_delay = run_delay;
        return rules_of(one.concluded());
    };
    EXPECT_EQ(made(0.85, 0).find("sequential"), std::string::npos);
    EXPECT_EQ(made(0.6, 0.25).find("sequential"), std::string::npos) << "it waited for a CPU";
    EXPECT_EQ(made(0.6, 0), "sequential");
}

// One run, with a few looks.
TEST(StatRules, ASequentialPartThatWasHardlySeen) {
    const auto made = [](double rate) {
        Case one;
        one.point(0, 1, 1.4, 0).doing(Doing::kRunning, 1.4);
        one.report.points.front().most_threads = 3;
        one.report.rate = rate;
        one.thread(0, 1, Doing::kJoinWait).slowed(0, 1, 0.9).slowed(0, 0.6, 0.5);
        return one.concluded().findings.front();
    };
    EXPECT_EQ(made(100).rule, "sequential");
    EXPECT_EQ(made(100).confidence, Confidence::kMedium);
    EXPECT_EQ(made(40).rule, "sequential");
    EXPECT_EQ(made(40).confidence, Confidence::kLow) << "16 looks at one alone";
}

// Others had the CPUs by turns: what is left of one thread's work is not what only one could do.
TEST(StatRules, ASequentialPartOnABusyMachine) {
    const auto busy = [] {
        Case made;
        made.point(1, 2, 1, 0).point(4, 2, 1, 0).others(1.4);
        made.report.points.back().run_delay = 3;
        made.doing(Doing::kRunning, 1).doing(Doing::kRunnable, 3);
        return made;
    };
    Case delayed = busy(); // 60 % of the time one alone wants a CPU, and all do the same work
    delayed.slowed(0, 1.2, 0.25).slowed(1.2, 2, 0.25).slowed(1.2, 2, 0.25).slowed(1.2, 2, 0.25);
    EXPECT_EQ(rules_of(delayed.concluded()), "inconclusive");
    Case prepared = busy(); // one has done seven tenths of it before there were others
    prepared.slowed(0, 1.4, 0.7).slowed(1.4, 2, 0.1).slowed(1.4, 2, 0.1).slowed(1.4, 2, 0.1);
    ASSERT_EQ(rules_of(prepared.concluded()), "sequential inconclusive");
    EXPECT_EQ(prepared.report.findings.front().evidence.front(), "75 % of the time only one thread had work");
    EXPECT_EQ(prepared.report.findings.front().confidence, Confidence::kMedium);
    Case one_run = prepared;
    one_run.report.points.erase(one_run.report.points.begin());
    ASSERT_EQ(rules_of(one_run.concluded()), "sequential");
    EXPECT_EQ(one_run.report.findings.front().confidence, Confidence::kLow);
    Case turns = busy(); // two take turns, at a barrier say, and their creator waits
    turns.slowed(0, 0.01, 0).slowed(0, 1, 0.5).slowed(1, 2, 0.5);
    turns.report.threads.back().spans.front().end = 1.9;
    turns.slowed(1.9, 2, 0.001);
    EXPECT_EQ(rules_of(turns.concluded()), "inconclusive");
    Case left_over = busy(); // the same, but in the end
    left_over.slowed(0.6, 2, 0.7).slowed(0, 0.6, 0.1).slowed(0, 0.6, 0.1).slowed(0, 0.6, 0.1);
    EXPECT_EQ(rules_of(left_over.concluded()), "inconclusive") << "others may have been let in first";
}

// Of a program that loses with more threads than cores: what is not for their sake.
TEST(StatRules, LossesThatAreNotOversubscription) {
    const auto made = [](double two, double four, double others, double waits) {
        Case one;
        one.point(1, 1, 1, 0).point(2, two, 1, 0).point(4, four, 1.3, 0);
        one.doing(Doing::kRunning, 1.3).doing(Doing::kRunnable, 2.6).doing(Doing::kLockWait, waits);
        one.report.points.back().load.others = others;
        return rules_of(one.concluded()).find("oversubscribed") != std::string::npos;
    };
    EXPECT_TRUE(made(0.62, 0.7, 0.01, 0));
    EXPECT_FALSE(made(0.62, 0.7, 0.19, 0)) << "others took a tenth of the machine";
    EXPECT_FALSE(made(0.62, 0.7, 0.01, 1)) << "threads wait for a lock";
    EXPECT_FALSE(made(1.36, 1.56, 0.01, 0)) << "two threads are slower than one already";
    EXPECT_TRUE(made(1.1, 1.56, 0.01, 0));
}

// CPU time is dearer beside other programs.
TEST(StatRules, MemoryThatOthersMadeDear) {
    const auto made = [](double most) {
        Case one;
        one.point(1, 0.6, 0.4, 0).point(2, 0.9, 0.62, 0).point(4, 1, most, 0).others(1.3);
        for (Point &point : one.report.points)
            point.run_delay = 1;
        return rules_of(one.concluded()).find("false-sharing") != std::string::npos;
    };
    EXPECT_FALSE(made(0.42));
    EXPECT_FALSE(made(0.85)) << "2.1 times as much, for two cores";
    EXPECT_TRUE(made(0.9));
}

// Threads that each used a second of CPU time, and may run on these CPUs.
Case pinned(std::initializer_list<const char *> cpus) {
    Case made;
    made.point(1, 2, 2, 0).point(2, 2, 2, 0).doing(Doing::kRunning, 2).doing(Doing::kRunnable, 2);
    for (const char *list : cpus) {
        made.thread(0, 2);
        made.report.threads.back().cpu = 1;
        made.report.threads.back().cpus = list;
    }
    return made;
}

TEST(StatRules, ThreadsThatMayRunOnOneCpu) {
    Case made = pinned({"0", "0"});
    made.report.machine.processors = 2;
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "affinity");
    EXPECT_EQ(report.findings.front().cause, "2 threads may run on CPU 0 only, of 2 CPUs");
    EXPECT_EQ(report.findings.front().confidence, Confidence::kHigh);
}

// Others use the CPU that these threads may not use: that has kept none of them from anything. Those that may use both were kept from it.
TEST(StatRules, ThreadsThatLeaveACpuToOthers) {
    Case made = pinned({"0", "0"});
    made.others(0.8);
    ASSERT_EQ(rules_of(made.concluded()), "affinity");
    EXPECT_EQ(made.report.outcome, Outcome::kNoFaster) << made.report.verdict;
    Case free = pinned({"0-1", "0-1"});
    free.others(0.8);
    EXPECT_EQ(rules_of(free.concluded()), "inconclusive");
}

// One thread is pinned and did most; the rest, each of which did little, might have used all CPUs.
TEST(StatRules, ManySmallThreadsThatMayRunAnywhereAreKeptFromCpus) {
    const auto outcome = [](const char *of_the_rest) {
        Case made = pinned({"0"});
        for (int i = 0; i < 24; i++) {
            made.thread(0, 2);
            made.report.threads.back().cpu = 0.04;
            made.report.threads.back().cpus = of_the_rest;
        }
        made.others(0.8);
        return made.concluded().outcome;
    };
    EXPECT_EQ(outcome("0-1"), Outcome::kInconclusive);
    EXPECT_EQ(outcome("0"), Outcome::kNoFaster) << "none of them may use the other CPU";
}

// The program's own threads keep to one CPU, and the processes that it started did the work.
TEST(StatRules, ThePinnedParentOfProcessesTellsNothing) {
    Case made = pinned({"0", "0"});
    made.others(1);
    made.report.own_cpu = 0.1;
    made.report.children_cpu = 1.9;
    EXPECT_EQ(made.concluded().outcome, Outcome::kInconclusive) << made.report.verdict;
}

// Each on a CPU of its own, or on any; where it is not known; and where the CPUs are all used.
TEST(StatRules, ThreadsThatMayRunOnEnoughCpus) {
    for (const auto &cpus :
         {std::initializer_list<const char *>{"0", "1"}, {"0-1", "0"}, {"0", ""}, {"", ""}}) {
        Case made = pinned(cpus);
        made.report.machine.processors = 2;
        EXPECT_EQ(rules_of(made.concluded()).find("affinity"), std::string::npos) << *cpus.begin();
    }
    Case made = pinned({"0", "0"});
    made.report.machine.processors = 1;
    EXPECT_EQ(rules_of(made.concluded()).find("affinity"), std::string::npos);
    Case used = pinned({"0", "0"});
    used.report.points.back().user = 4; // by threads that were not seen
    EXPECT_EQ(rules_of(used.concluded()).find("affinity"), std::string::npos);
}

// --by-affinity: as many CPUs as threads were asked for, and it makes twice as many.
TEST(StatRules, CpusThatWereAskedFor) {
    Case made = pinned({"0", "0"});
    made.report.machine.processors = 2;
    for (Point &point : made.report.points)
        point.threads = 1;
    made.report.sampled_threads = 1;
    EXPECT_EQ(rules_of(made.concluded()).find("affinity"), std::string::npos);
}

} // namespace
