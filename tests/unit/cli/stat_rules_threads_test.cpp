// SPDX-License-Identifier: Apache-2.0
//
// The rules of threads that come and go, or that spin (cli/stat/rules/churn.cpp and spinning.cpp), on reports that are made up.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>

#include "stat/rules.hpp"
#include "stat_case.hpp"

namespace {

TEST(StatRules, SpinningAtAnOpenMPBarrier) {
    const auto barrier = [] {
        Case made;
        made.point(1, 0.5, 0.5, 0).point(2, 0.4, 0.78, 0.02).doing(Doing::kRunning, 0.8);
        made.burns({own("step._omp_fn.0"), library("GOMP_parallel", "libgomp.so.1"), own("step", 9),
                    own("main", 40)},
                   0.6, 0.99);
        return made;
    };
    Case made = barrier();
    made.burns(
            {library("", "libgomp.so.1"), library("GOMP_barrier", "libgomp.so.1"), own("step._omp_fn.0", 12)},
            0.3, 0)
        .burns({library("", "libgomp.so.1"), library("", "libgomp.so.1")}, 0.1, 0);
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "busy-wait");
    const Finding &found = report.findings.front();
    EXPECT_EQ(
        found.cause,
        "Threads wait by spinning: OpenMP barrier (#pragma omp barrier, or the end of a loop) in step()");
    EXPECT_EQ(found.function, "step");
    EXPECT_EQ(found.line, 12);
    EXPECT_NE(found.evidence.front().find("40 % of CPU time there, 0 %"), std::string::npos)
        << found.evidence.front();

    Case docked =
        barrier(); // threads that wait for the next region have nothing of the program on their stacks
    docked.burns({library("", "libgomp.so.1"), library("", "libgomp.so.1")}, 0.4, 0);
    ASSERT_EQ(rules_of(docked.concluded()), "busy-wait");
    EXPECT_EQ(docked.report.findings.front().function, "step");
    EXPECT_EQ(docked.report.findings.front().line, 9) << "where the region is";

    Case innocent = barrier();
    innocent.burns(
        {library("", "libgomp.so.1"), library("GOMP_barrier", "libgomp.so.1"), own("step._omp_fn.0", 12)},
        0.2, 0);
    EXPECT_NE(rules_of(innocent.concluded()), "busy-wait");

    Case kept_waiting = barrier(); // for one that had no CPU: no more CPU time than before
    kept_waiting.report.points.back().user = 0.55;
    kept_waiting.burns(
        {library("", "libgomp.so.1"), library("GOMP_barrier", "libgomp.so.1"), own("step._omp_fn.0", 12)},
        0.4, 0);
    EXPECT_EQ(rules_of(kept_waiting.concluded()).find("busy-wait"), std::string::npos);
}

TEST(StatRules, ThreadsThatComeAndGo) {
    Case made;
    made.point(1, 0.5, 0.2, 0.3).point(4, 0.5, 0.3, 0.6).doing(Doing::kRunning, 0.9);
    for (int i = 0; i < 150; i++)
        made.thread(i * 0.003, i * 0.003 + 0.002);
    made.report.threads_created = 150;
    made.burns({library("clone3"), library("pthread_create"), own("start_round", 55)}, 0.3, 0.3);
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "thread-churn");
    EXPECT_EQ(report.findings.front().function, "start_round");
    EXPECT_EQ(report.findings.front().line, 55);
}

// Of which few were seen: three were there in each of ten looks, but three thousand have been made.
TEST(StatRules, ThreadsThatComeAndGoUnseen) {
    Case made;
    made.point(1, 0.1, 0.05, 0.05).point(2, 0.1, 0.05, 0.06).doing(Doing::kRunning, 0.1);
    for (int i = 0; i < 10; i++)
        made.thread(i * 0.01, i * 0.01);
    made.report.sampled_wall = 0.1;
    made.report.samples = 30;
    made.report.rate = 100;
    made.report.threads_created = 3000;
    made.report.creations_counted = true;
    ASSERT_EQ(rules_of(made.concluded()), "thread-churn");
    EXPECT_EQ(made.report.findings.front().confidence, Confidence::kHigh);
    Case one_run = made;
    one_run.report.points.erase(one_run.report.points.begin());
    one_run.report.points.front().most_threads = 1;
    EXPECT_EQ(one_run.concluded().verdict.find("with a single thread"), std::string::npos)
        << "none was looked at";
    EXPECT_EQ(made.report.findings.front().evidence.front(),
              "3000 threads created in 100 ms; they lived for 100 us on average");
    for (int i = 0; i < 25; i++) // nor is it otherwise if there are some that live long, which are all seen
        made.thread(0, 0.1);
    made.report.samples = 280;
    EXPECT_EQ(rules_of(made.concluded()), "thread-churn");
    made.report.threads.resize(10);
    made.report.samples = 30;
    made.report.threads_created = 99; // too few to tell
    EXPECT_EQ(rules_of(made.concluded()).find("thread-churn"), std::string::npos);
    made.report.threads_created = 3000; // but all at once
    made.report.samples = 30000;
    EXPECT_EQ(rules_of(made.concluded()).find("thread-churn"), std::string::npos);
}

// On a busy machine each of ten thousand is seen for a moment only, before the program ends with all of them.
TEST(StatRules, ThreadsThatAreAllThereInTheEnd) {
    Case made;
    made.point(10000, 1.0, 0.2, 0.3).doing(Doing::kRunning, 0.9);
    made.report.points.front().most_threads = 10001;
    for (int i = 0; i < 10000; i++)
        made.thread(1.08 + i * 0.000002, 1.1);
    made.report.sampled_wall = 1.1;
    made.report.threads_created = 10000;
    EXPECT_EQ(rules_of(made.concluded()).find("thread-churn"), std::string::npos);
    made.report.points.front().most_threads = 1000;
    EXPECT_NE(rules_of(made.concluded()).find("thread-churn"), std::string::npos);
}

// Few of them, beside a lock that most of the time goes to.
TEST(StatRules, ThreadsThatComeAndGoBesideALock) {
    Case made;
    made.point(1, 0.5, 0.5, 0).point(4, 1.0, 1.5, 0.4).doing(Doing::kRunning, 1.9).doing(Doing::kLockWait, 1);
    made.lock(LockKind::kGlobal, "lock in prog", 2).waits({library("pthread_mutex_lock"), own("put")}, 100);
    for (int i = 0; i < 150; i++)
        made.thread(i * 0.003, i * 0.003 + 0.002);
    made.report.threads_created = 300;
    made.report.creations_counted = true;
    EXPECT_EQ(rules_of(made.concluded()), "hot-mutex");
    made.report.threads_created = 30000;
    EXPECT_NE(rules_of(made.concluded()).find("thread-churn"), std::string::npos) << rules_of(made.report);
}

// They cost one thread the same, so that two are nearly twice as fast.
TEST(StatRules, ThreadsThatComeAndGoInAProgramThatScales) {
    const auto made = [](unsigned created) {
        Case one;
        one.point(1, 0.3, 0.2, 0.1).point(2, 0.18, 0.22, 0.11).doing(Doing::kRunning, 0.3);
        one.report.samples = 50;
        one.report.threads_created = created;
        one.report.creations_counted = true;
        return one.concluded();
    };
    EXPECT_EQ(made(6000).outcome, Outcome::kScales);
    EXPECT_EQ(rules_of(made(6000)), "thread-churn");
    EXPECT_EQ(made(6000).verdict.rfind("Threads help: ", 0), 0U) << made(6000).verdict;
    EXPECT_EQ(rules_of(made(600)), "scales") << "600 of them take some 12 ms of 330";
}

// By their creator; else by their joiner; else by where they begin.
TEST(StatRules, WhereThreadsComeFrom) {
    Case made;
    made.point(1, 0.5, 0.2, 0.3).point(4, 0.5, 0.3, 0.6).doing(Doing::kRunning, 0.9);
    for (int i = 0; i < 150; i++)
        made.thread(i * 0.003, i * 0.003 + 0.002);
    made.report.threads_created = 150;
    made.burns({own("main", 90)}, 0.3, 0.3).burns({own("chew", 7), own("task", 12)}, 0.2, 0.2);
    const auto place = [&made] {
        made.concluded();
        return rules_of(made.report) + " " + made.report.findings.front().function + ":" +
               std::to_string(made.report.findings.front().line);
    };
    EXPECT_EQ(place(), "thread-churn task:12");
    Site joins;
    joins.stack = {library("pthread_join"), own("run", 70)};
    joins.doing = Doing::kJoinWait;
    made.report.others.push_back(joins);
    EXPECT_EQ(place(), "thread-churn run:70");
    Site maker;
    maker.stack = {library("pthread_create", "libthrum-stat.so"), own("start_round", 55), own("run", 68)};
    maker.calls = 150;
    maker.share = 1;
    made.report.makers.push_back(maker);
    EXPECT_EQ(place(), "thread-churn start_round:55");
    EXPECT_EQ(made.report.findings.front().cause,
              "Threads are created and end all the time in start_round()");
    EXPECT_NE(made.report.findings.front().fix.find("thrum compare"), std::string::npos);
    const auto &evidence = made.report.findings.front().evidence;
    for (const char *line : {"they are created in start_round() (prog.c:55)",
                             "they are joined in run() (prog.c:70)", "they begin in task() (prog.c:12)"})
        EXPECT_NE(std::find(evidence.begin(), evidence.end(), line), evidence.end()) << line;
}

TEST(StatRules, SpinningInALoopOfOnesOwn) {
    Case made;
    made.point(1, 0.5, 0.5, 0)
        .point(4, 0.9, 1.75, 0.02)
        .doing(Doing::kRunning, 1.75)
        .doing(Doing::kRunnable, 1.6);
    made.burns({own("await_turn"), own("take_turns", 30)}, 0.6, 0).burns({own("take_turns", 30)}, 0.4, 1);
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "busy-wait");
    EXPECT_EQ(report.findings.front().function, "await_turn");
}

TEST(StatRules, SpinningWithSchedYield) {
    Case made;
    made.point(4, 0.9, 1, 0.75).doing(Doing::kRunning, 1.75).doing(Doing::kRunnable, 1.6);
    made.burns({library("sched_yield"), own("take")}, 0.3, 0).burns({own("work", 30)}, 0.7, 0);
    const Report &report = made.concluded();
    ASSERT_EQ(rules_of(report), "busy-wait");
    EXPECT_EQ(report.findings.front().confidence, Confidence::kMedium) << "of one run";
    EXPECT_EQ(report.findings.front().function, "take");

    Case compared;
    compared.point(1, 0.5, 0.5, 0).point(4, 0.9, 1, 0.75);
    compared.doing(Doing::kRunning, 1.75).doing(Doing::kRunnable, 1.6);
    compared.burns({library("sched_yield"), own("take")}, 0.3, 0).burns({own("work", 30)}, 0.7, 1);
    ASSERT_EQ(rules_of(compared.concluded()), "busy-wait");
    EXPECT_EQ(compared.report.findings.front().confidence, Confidence::kHigh);

    Case blind;
    blind.point(1, 0.5, 0.5, 0).point(4, 0.9, 1, 0.75);
    blind.report.points.back().involuntary = 100000;
    blind.burns({own("work", 30)}, 0.97, 1);
    EXPECT_EQ(rules_of(blind.concluded()), "busy-wait");
    EXPECT_EQ(blind.report.findings.front().function, "") << "it was not seen";
    blind.burns({library("sched_yield"), own("take")}, 0.03, 0);
    EXPECT_EQ(rules_of(blind.concluded()), "busy-wait");
    EXPECT_EQ(blind.report.findings.front().function, "take");
}

// As the scheduler of Go does, where goroutines hand work over: no call of the program's shows.
TEST(StatRules, ARuntimeThatYields) {
    const auto made = [](const char *function) {
        Case one;
        one.point(1, 0.5, 0.5, 0).point(4, 0.9, 1, 0.75);
        one.report.points.back().involuntary = 100000;
        one.burns({library(function, "prog")}, 0.3, 0.3).burns({own("main.work", 30)}, 0.7, 0.7);
        return rules_of(one.concluded());
    };
    EXPECT_EQ(made("runtime.schedule").find("busy-wait"), std::string::npos);
    EXPECT_EQ(made("memcpy"), "busy-wait");
}

// It does so without another thread to wait for as well.
TEST(StatRules, OneThreadThatYieldsDoesNotWait) {
    const auto made = [](double with_one) {
        Case one;
        one.point(1, 0.5, 0.5, 0).point(4, 0.9, 1, 0.75);
        one.burns({library("sched_yield"), own("turn")}, 0.57, with_one)
            .burns({own("work", 30)}, 0.43, 1 - with_one);
        return rules_of(one.concluded());
    };
    EXPECT_EQ(made(0.2), "busy-wait");
    EXPECT_EQ(made(0.8), "inconclusive");
}

// The surest is not the first where it explains little.
TEST(StatRules, WhatExplainsMoreComesFirst) {
    const auto made = [](double yielding) {
        Case one = random_case();
        one.report.waits.clear();
        one.report.locks.clear();
        one.doing(Doing::kLockWait, 0);
        one.burns({library("sched_yield"), own("relax")}, yielding, 0);
        return rules_of(one.concluded());
    };
    EXPECT_EQ(made(0.06), "hidden-lock") << "less than a third of what the first explains";
    EXPECT_EQ(made(0.28), "hidden-lock busy-wait");
    EXPECT_EQ(made(0.35), "busy-wait hidden-lock");
}

// A thread that is woken takes a CPU from another; so do other programs.
TEST(StatRules, SwitchesThatAreNoYields) {
    const auto made = [](double voluntary, double others) {
        Case one;
        one.point(1, 0.5, 0.5, 0).point(4, 0.6, 0.5, 0.5, voluntary).others(others);
        one.report.points.back().involuntary = 9000;
        one.report.points.back().run_delay = 2;
        return rules_of(one.concluded()).find("busy-wait") != std::string::npos;
    };
    EXPECT_TRUE(made(100, 0.01));
    EXPECT_FALSE(made(22000, 0.01)) << "each may have been a waking";
    EXPECT_TRUE(made(100, 0.1));
    Case quiet; // that yields now and then
    quiet.point(1, 0.5, 0.5, 0).point(4, 0.6, 0.98, 0.02, 100);
    quiet.report.points.back().involuntary = 20000;
    EXPECT_NE(rules_of(quiet.concluded()).find("busy-wait"), std::string::npos);
    Case busy;
    busy.point(1, 0.9, 0.5, 0).point(4, 1.6, 0.42, 0.1).others(1.5);
    busy.report.points.back().involuntary = 4000;
    busy.report.points.back().run_delay = 2;
    busy.report.points.front().involuntary = 500;
    EXPECT_EQ(rules_of(busy.concluded()), "inconclusive") << "8 times as often as one thread";
    busy.report.points.back().involuntary = 40000;
    EXPECT_EQ(rules_of(busy.concluded()), "busy-wait inconclusive") << "80 times: others do not do that";
    busy.report.points.back().system = 0.002;
    EXPECT_EQ(rules_of(busy.concluded()), "inconclusive") << "nor does one that makes no calls";
}

// A shell that starts another program: 30 switches in 4 ms are no habit. And one thread waits for no other.
TEST(StatRules, AFewSwitchesAreNoYields) {
    const auto made = [](unsigned threads, double cpu) {
        Case one;
        one.point(0, 1.2 * cpu, 0.9 * cpu, 0.1 * cpu, 1250 * cpu);
        one.report.points.back().most_threads = threads;
        one.report.points.back().involuntary = 7500 * cpu;
        return rules_of(one.concluded()).find("busy-wait") != std::string::npos;
    };
    EXPECT_FALSE(made(1, 0.004));
    EXPECT_FALSE(made(2, 0.004));
    EXPECT_FALSE(made(1, 0.5));
    EXPECT_TRUE(made(2, 0.5));
}

// Ten samples, of which one was in sched_yield().
TEST(StatRules, AFewSamplesAreNoYields) {
    const auto made = [](double weight) {
        Case one;
        one.point(4, 0.9, 1, 0.75).doing(Doing::kRunning, 1.75);
        one.burns({library("sched_yield"), own("take")}, 0.1, 0).burns({own("work", 30)}, 0.9, 0);
        for (Site &site : one.report.burns)
            site.samples = static_cast<std::uint64_t>(static_cast<double>(site.samples) * weight);
        return rules_of(one.concluded()).find("busy-wait") != std::string::npos;
    };
    EXPECT_TRUE(made(1));
    EXPECT_FALSE(made(0.1));
}

// A loop that was not there before has to be paid for, and to have been seen often enough.
TEST(StatRules, SpinningTakesCpuTime) {
    const auto made = [](double user, double weight) {
        Case one;
        one.point(1, 0.5, 0.5, 0).point(4, 0.9, user, 0.02);
        one.burns({own("chew"), own("earn", 30)}, 0.6, 0.04).burns({own("earn", 30)}, 0.4, 0.96);
        for (std::vector<Site> *burns : {&one.report.burns, &one.report.burns_one})
            for (Site &site : *burns)
                site.samples = static_cast<std::uint64_t>(static_cast<double>(site.samples) * weight);
        return rules_of(one.concluded()).find("busy-wait") != std::string::npos;
    };
    EXPECT_TRUE(made(1.2, 1));
    EXPECT_FALSE(made(0.55, 1)) << "it took no more CPU time than before";
    EXPECT_FALSE(made(1.2, 0.1)) << "ten samples";
}

// One run shows no loss: it is told only where they cost much, and the run is long enough for that to mean something.
TEST(StatRules, ThreadsThatComeAndGoInOneRun) {
    const auto made = [](double cpu, unsigned created) {
        Case one;
        one.point(0, cpu, cpu / 2, cpu / 2).doing(Doing::kRunning, cpu);
        one.report.points.front().most_threads = 9;
        for (int i = 0; i < 150; i++)
            one.thread(i * 0.003, i * 0.003 + 0.002);
        one.report.threads_created = created;
        return rules_of(one.concluded());
    };
    EXPECT_EQ(made(0.5, 1200), "thread-churn");
    EXPECT_EQ(made(0.5, 320).find("thread-churn"), std::string::npos) << "they take 1 % of CPU time";
    EXPECT_EQ(made(0.02, 170).find("thread-churn"), std::string::npos) << "it is over in a moment";
}

} // namespace
